package rest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func service() Service {
	return Service{ID: "mine", Name: "Mine", Provider: "openai", TokenEnv: "MY_KEY"}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*registry.Invocation)
		want   string
	}{
		"plain":        {func(inv *registry.Invocation) {}, "--provider=mine --access=write --timeout=0"},
		"write":        {func(inv *registry.Invocation) { inv.Access = agent.AccessWrite }, "--provider=mine --access=write --timeout=0"},
		"read":         {func(inv *registry.Invocation) { inv.Access = agent.AccessRead }, "--provider=mine --access=read --timeout=0"},
		"model":        {func(inv *registry.Invocation) { inv.Model = "-m" }, "--provider=mine --access=write --timeout=0 --model=-m"},
		"idle timeout": {func(inv *registry.Invocation) { inv.IdleTimeout = 90 * time.Second }, "--provider=mine --access=write --timeout=0 --idle-timeout=1m30s"},
		"the caller's": {func(inv *registry.Invocation) { inv.Args = []string{"--timeout=5s"} }, "--provider=mine --access=write --timeout=0 --timeout=5s"},
		"trust":        {func(inv *registry.Invocation) { inv.TrustWorkspace = true }, "--provider=mine --access=write --timeout=0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.Invocation{Prompt: "be kind\n/hello --help", Access: agent.AccessWrite}
			test.change(&r)
			got, err := Runtime(service()).Run.Command(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(agent.Command{Args: strings.Fields(test.want), Stdin: "be kind\n/hello --help"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A custom service is a runtime. Importing this package registers no runtime.
func TestCustomService(t *testing.T) {
	t.Parallel()
	if list := registry.Default().All(); len(list) > 0 {
		t.Errorf("%d are registered", len(list))
	}
	if err := new(registry.Registry).Register(Runtime(service())); err != nil {
		t.Error(err)
	}
}
