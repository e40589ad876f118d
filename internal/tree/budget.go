// Package tree walks and removes files and folders that other programs have made, such
// as those that an agent leaves. It holds every directory by its descriptor, never
// follows a link or waits for a file, and keeps to a [Budget].
package tree

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// ErrOver matches the error of work that is over its budget. What was done until then
// stays done.
var ErrOver = errors.New("over the budget")

// Limits bound work. A limit of 0 means no limit.
type Limits struct {
	Entries int64 // files and folders visited
	Bytes   int64 // bytes copied
	Depth   int   // levels of folders searched for files
}

// Default is the limit of a run before its agent starts, and again after the agent has
// ended: far more than a well-behaved agent leaves.
var Default = Limits{Entries: 1 << 20, Bytes: 1 << 30, Depth: 32}

// A Budget bounds work by the time of a context and by Limits. Its methods may be
// called concurrently.
type Budget struct {
	ctx     context.Context
	limits  Limits
	entries atomic.Int64
	bytes   atomic.Int64

	collects bool // the caller reports Left
	mu       sync.Mutex
	left     []string
}

// NewBudget returns a budget that lasts until ctx ends.
func NewBudget(ctx context.Context, limits Limits) *Budget {
	return &Budget{ctx: ctx, limits: limits}
}

type budgetKey struct{}

// With returns a context that carries a budget, which lasts until ctx ends. The caller
// must report what Left returns.
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

// Part returns a budget that lasts until ctx ends or the time of b is over.
func (b *Budget) Part(ctx context.Context, limits Limits) (part *Budget, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })
	return NewBudget(ctx, limits), func() { stop(); cancel(nil) }
}

// over is an error that names the limit.
type over string

func (o over) Error() string        { return string(o) }
func (o over) Is(target error) bool { return target == ErrOver }

// Spent returns nil until the budget is spent, and then which limit was reached.
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

// Leave records what stays because the budget is spent. It returns false for a budget
// that no context carries: then the caller must report it.
func (b *Budget) Leave(what string, why error) bool {
	if !b.collects {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = append(b.left, fmt.Sprintf("%s (%v)", what, why))
	return true
}

// Left returns what Leave recorded.
func (b *Budget) Left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

// Done is closed when the time of the budget is over.
func (b *Budget) Done() <-chan struct{} { return b.ctx.Done() }
