package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/tree"
)

// Stale files and the content of a repository cannot hold up a run: everything before
// the start of the agent has one budget, and everything after its end another.
const (
	beforeLimit = 30 * time.Second
	afterLimit  = 5 * time.Second
	// stopLimit counts from the end of the caller's context.
	stopLimit = time.Second
	// One part in recordShare of both is kept for the end of the record, which comes
	// last.
	recordShare = 4
)

// before returns the context of everything before the start.
func (p *prepared) before(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, beforeLimit, errSlowStart)
	ctx, p.budgets[0] = tree.With(ctx, tree.Default)
	return ctx, cancel
}

// after returns the context of everything after the end of the agent: completing its
// result, keeping its session, removing its folders, and then ending its record. It
// begins with the first call and ends with endAfter.
func (p *prepared) after(parent context.Context) context.Context {
	if p.afterwards == nil {
		all, end := lasting(parent, afterLimit, stopLimit)
		cleaning, endCleaning := lasting(parent, afterLimit-afterLimit/recordShare, stopLimit-stopLimit/recordShare)
		p.afterwards = all
		p.cleaning, p.budgets[1] = tree.With(cleaning, tree.Default)
		p.endAfter = func() {
			endCleaning()
			end()
			p.afterwards = nil
		}
		if p.workspace != nil {
			p.workspace.Bound(p.cleaning)
		}
	}
	return p.afterwards
}

// lasting returns a context that ends after limit, or stop after the end of parent.
func lasting(parent context.Context, limit, stop time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(parent), limit, errSlowEnd)
	release := context.AfterFunc(parent, func() { time.AfterFunc(stop, cancel) })
	return ctx, func() { release(); cancel() }
}

// errSlowStart is why a run is not started.
var errSlowStart = fmt.Errorf("checking the repository took longer than %v: %w", beforeLimit, context.DeadlineExceeded)

// errSlowEnd is why the work after the end of the agent is cut short.
var errSlowEnd = errors.New("cleaning up after the agent took too long")

// reportLeft names what is over the budget and stays.
func (p *prepared) reportLeft() {
	var left []string
	for _, b := range p.budgets {
		if b != nil {
			left = append(left, b.Left()...)
		}
	}
	if len(left) > 0 {
		p.warn(fmt.Sprintf("left behind: %s; \"bus-agent doctor --sweep\" removes it", strings.Join(left, ", ")))
	}
}

// removeTempDir removes dir with everything in it, including directories that cannot
// be written.
func removeTempDir(b *tree.Budget, dir string) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return tree.Remove(b, parent, filepath.Base(dir), process.ClaimName)
}

// finish ends the context of after.
func (p *prepared) finish() {
	if p.afterwards != nil {
		p.endAfter()
	}
}
