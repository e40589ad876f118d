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

// What an agent has left, or a repository holds, cannot keep a run: all that is done
// before the start of the agent has one budget, and all that is done after its end
// has another.
const (
	beforeLimit = 30 * time.Second
	afterLimit  = 5 * time.Second
	// stopLimit counts from when the caller wants the end.
	stopLimit = time.Second
	// recordShare is the part of both, one in so many, that is left for the end of
	// the record, which comes last.
	recordShare = 4
)

// before returns the context of what is done before the start.
func (p *prepared) before(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, beforeLimit, errSlowStart)
	ctx, p.budgets[0] = tree.With(ctx, tree.Default)
	return ctx, cancel
}

// after returns the context of all that is done after the end of the agent: to
// complete its result, to keep its session, to remove what was made for it, and then
// to end its record. It begins with the first call and ends with endAfter.
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
var errSlowStart = fmt.Errorf("what the repository holds could not be checked and set up within %v: %w", beforeLimit, context.DeadlineExceeded)

// errSlowEnd is why what is done after the end of the agent is cut short.
var errSlowEnd = errors.New("what follows the end of the agent took too long")

// reportLeft names what stays because it is over the budget.
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

// removeTempDir removes dir with everything in it, also where a tool left
// directories that cannot be written.
func removeTempDir(b *tree.Budget, dir string) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return tree.Remove(b, parent, filepath.Base(dir), process.ClaimName)
}

// finish ends what after has begun.
func (p *prepared) finish() {
	if p.afterwards != nil {
		p.endAfter()
	}
}
