//go:build hostile

package all_test

import (
	"testing"

	"github.com/busdk/bus-agent/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

// Every runtime that a program gets with this package and with package more is attacked
// by runs, also one whose own tests leave that out.
func TestAttackEveryRuntime(t *testing.T) {
	t.Parallel()
	runtimes := running()
	if len(runtimes) == 0 {
		t.Fatal("no runtime is registered")
	}
	for _, rt := range runtimes {
		t.Run(rt.ID, func(t *testing.T) {
			t.Parallel()
			if err := backendtest.Attack(rt); err != nil {
				t.Error(err)
			}
		})
	}
}
