package rest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func service() Service {
	return Service{ID: "mine", Name: "Mine", Provider: "openai", TokenEnv: "MY_KEY"}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*agent.Request)
		want   string
	}{
		"plain":           {func(r *agent.Request) {}, "--provider=mine --access=write --timeout=0"},
		"write":           {func(r *agent.Request) { r.Access = agent.AccessWrite }, "--provider=mine --access=write --timeout=0"},
		"read":            {func(r *agent.Request) { r.Access = agent.AccessRead }, "--provider=mine --access=read --timeout=0"},
		"model":           {func(r *agent.Request) { r.Model = "-m" }, "--provider=mine --access=write --timeout=0 --model=-m"},
		"idle timeout":    {func(r *agent.Request) { r.IdleTimeout = 90 * time.Second }, "--provider=mine --access=write --timeout=0 --idle-timeout=0"},
		"the caller's":    {func(r *agent.Request) { r.Args = []string{"--timeout=5s"} }, "--provider=mine --access=write --timeout=0 --timeout=5s"},
		"trust and limit": {func(r *agent.Request) { r.TrustWorkspace, r.Timeout = true, time.Hour }, "--provider=mine --access=write --timeout=0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := agent.Request{Prompt: "/hello --help"}
			r.Resolved.Setup.Prefix = "be kind\n"
			test.change(&r)
			got, err := Runtime(service()).Command(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(agent.Command{Args: strings.Fields(test.want), Stdin: "be kind\n/hello --help"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Runtime(service()).Command(agent.Request{Access: agent.AccessFull}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "Mine has no tools") {
		t.Error(err)
	}
}

// A service of one's own is a runtime, and importing this package registers none.
func TestServiceOfOnesOwn(t *testing.T) {
	t.Parallel()
	if list := registry.Default().All(); len(list) > 0 {
		t.Errorf("%d are registered", len(list))
	}
	if err := new(registry.Registry).Register(Runtime(service())); err != nil {
		t.Error(err)
	}
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text     string
		required bool
		refused  bool
		warnings int
		begins   string
	}{
		"none":               {"", false, false, 0, ""},
		"one":                {"be kind\n", true, false, 0, "be kind"},
		"too long":           {strings.Repeat("be kind\n", instructions.MaxBytes/8+1), false, false, 1, "be kind"},
		"too long, required": {strings.Repeat("be kind\n", instructions.MaxBytes/8+1), true, true, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.text != "" {
				if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(c.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			chain, err := instructions.Discover(dir)
			if err != nil {
				t.Fatal(err)
			}
			w, err := instructions.Open(chain, false)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			setup, err := prepare(t.Context(), agent.Request{RequireInstructions: c.required}, w)
			if errors.Is(err, agent.ErrUsage) != c.refused || !c.refused && err != nil {
				t.Fatal(err)
			}
			if len(setup.Warnings) != c.warnings || !strings.Contains(setup.Prefix, c.begins) ||
				(c.begins != "") != strings.HasSuffix(setup.Prefix, instructions.EndOfText) || len(w.Actions()) > 0 {
				t.Errorf("%d bytes, warnings %q, written %q", len(setup.Prefix), setup.Warnings, w.Actions())
			}
		})
	}
}
