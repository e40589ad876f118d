package runner

import (
	"context"
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
)

// before returns the context of what is done before the start.
func (p *prepared) before(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, beforeLimit)
	ctx, p.budgets[0] = tree.With(ctx, tree.Default)
	return ctx, cancel
}

// after returns the context of what is done after the end of the agent: to complete
// its result, to keep its session and to remove what was made for it. It begins
// with the first call.
func (p *prepared) after(parent context.Context) context.Context {
	if p.afterwards == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), afterLimit)
		stop := context.AfterFunc(parent, func() { time.AfterFunc(stopLimit, cancel) })
		p.endAfter = func() { stop(); cancel() }
		p.afterwards, p.budgets[1] = tree.With(ctx, tree.Default)
		if p.workspace != nil {
			p.workspace.Bound(p.afterwards)
		}
	}
	return p.afterwards
}

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
