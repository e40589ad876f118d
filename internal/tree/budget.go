// Package tree works on files and folders that others have made, such as what an
// agent leaves behind. It holds every directory by its descriptor, follows no link,
// waits for no file, and keeps to a [Budget].
package tree

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// ErrOver is matched by the error of work that is over its budget. What was done by
// then stays done.
var ErrOver = errors.New("over the budget")

// Limits bound work by what it meets. A limit of 0 is none.
type Limits struct {
	Entries int64 // files and folders that are looked at
	Bytes   int64 // that are copied
	Depth   int   // of folders in folders whose files are looked for
}

// Default is what a run may take before its agent starts, and again after it has
// ended: far more than one leaves that means well.
var Default = Limits{Entries: 1 << 20, Bytes: 1 << 30, Depth: 32}

// A Budget is what work may take, together: the time of a context, and Limits. Its
// methods may be called concurrently.
type Budget struct {
	ctx     context.Context
	limits  Limits
	entries atomic.Int64
	bytes   atomic.Int64

	collects bool // its owner reports what is left
	mu       sync.Mutex
	left     []string
}

// NewBudget returns a budget that lasts until ctx ends.
func NewBudget(ctx context.Context, limits Limits) *Budget {
	return &Budget{ctx: ctx, limits: limits}
}

type budgetKey struct{}

// With returns a context that carries a budget, which lasts until ctx ends. The
// caller reports what is Left of it.
func With(ctx context.Context, limits Limits) (context.Context, *Budget) {
	b := NewBudget(ctx, limits)
	b.collects = true
	return context.WithValue(ctx, budgetKey{}, b), b
}

// Of returns the budget that ctx carries, or a new one that lasts until ctx ends.
func Of(ctx context.Context) *Budget {
	if b, ok := ctx.Value(budgetKey{}).(*Budget); ok {
		return b
	}
	return NewBudget(ctx, Default)
}

// Part returns a budget that lasts until ctx ends, or the time of b is over.
func (b *Budget) Part(ctx context.Context, limits Limits) (part *Budget, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })
	return NewBudget(ctx, limits), func() { stop(); cancel(nil) }
}

// over says which limit was reached.
type over string

func (o over) Error() string        { return string(o) }
func (o over) Is(target error) bool { return target == ErrOver }

// Spent returns why nothing more may be done; nil while something may.
func (b *Budget) Spent() error {
	switch {
	case b.ctx.Err() == nil:
		if n := b.limits.Entries; n > 0 && b.entries.Load() > n {
			return over(fmt.Sprintf("it holds more than %d files and folders", n))
		}
		return nil
	case errors.Is(b.ctx.Err(), context.DeadlineExceeded):
		return over("it takes too long")
	}
	return over(fmt.Sprintf("stopped: %v", context.Cause(b.ctx)))
}

// Entry takes one entry from the budget.
func (b *Budget) Entry() error {
	b.entries.Add(1)
	return b.Spent()
}

// Take takes the bytes of one file.
func (b *Budget) Take(n int64) error {
	if limit := b.limits.Bytes; limit > 0 && b.bytes.Add(n) > limit {
		b.bytes.Add(-n)
		return over(fmt.Sprintf("it is larger than the %d MiB that are left to copy", max(limit-b.bytes.Load(), 0)>>20))
	}
	return b.Spent()
}

// Fits reports whether a file of a size could be copied at all.
func (b *Budget) Fits(size int64) bool { return b.limits.Bytes <= 0 || size <= b.limits.Bytes }

// Depth returns an error when a folder is too deep.
func (b *Budget) Depth(depth int) error {
	if limit := b.limits.Depth; limit > 0 && depth > limit {
		return over(fmt.Sprintf("it is more than %d folders deep", limit))
	}
	return nil
}

// Leave notes something that stays because the budget is spent. It reports whether
// that will be reported, which is so for a budget that a context carries.
func (b *Budget) Leave(what string, why error) bool {
	if !b.collects {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = append(b.left, fmt.Sprintf("%s (%v)", what, why))
	return true
}

// Left returns what was noted.
func (b *Budget) Left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

// Done is closed when the time of the budget is over.
func (b *Budget) Done() <-chan struct{} { return b.ctx.Done() }
