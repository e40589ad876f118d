package preferences_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/registry"
)

func baseRegistry(t *testing.T) *registry.Registry {
	t.Helper()
	r := new(registry.Registry)
	check(t, r.Register(registry.Runtime{
		ID: "base", Name: "Base", Executables: []string{"base"}, InstallURL: "https://example.com",
		Run:     registry.Use{Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
		Decoder: formatters.Generic,
	}))
	return r
}

func TestRegistryAddsWhatIsDescribed(t *testing.T) {
	path := useFile(t)
	base := baseRegistry(t)
	all, warnings, err := preferences.Registry(t.Context(), base)
	if err != nil || all != base || len(warnings) > 0 {
		t.Errorf("nothing described: %p (base %p), %q, %v", all, base, warnings, err)
	}

	const good = `{"executables":["mine"],"install_url":"https://example.com"}`
	writeFile(t, path, `{"bus-agent.runtimes.mine":`+good+`,"bus-agent.runtimes.base":`+good+`,
		"bus-agent.runtimes.broken":{"executables":[]},"bus-agent.runtimes.a.b":`+good+`,"bus-agent.runtimes.text":"x"}`)
	all, warnings, err = preferences.Registry(t.Context(), base)
	check(t, err)
	if got := strings.Join(all.Tokens(), " "); got != "base mine" {
		t.Errorf("tokens = %s", got)
	}
	if rt, _ := all.Lookup("base"); rt.Name != "Base" {
		t.Error("a description took the place of a built-in runtime")
	}
	if len(base.Tokens()) != 1 {
		t.Error("the base was changed")
	}
	if len(warnings) != 4 {
		t.Errorf("warnings = %q, want four", warnings)
	}
	for i, want := range []string{"a.b: ", "base: ", "broken: ", "text: "} {
		if i < len(warnings) && !strings.HasPrefix(warnings[i], "preference bus-agent.runtimes."+want) {
			t.Errorf("warning %q does not name its key", warnings[i])
		}
	}
	if _, _, err := all.ParseToken("broken"); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), `"executables" is missing`) {
		t.Errorf("ParseToken = %v, want it to say why", err)
	}

	check(t, base.Register(registry.Runtime{
		ID: "listed", Name: "Listed", Executables: []string{"listed"}, InstallURL: "https://example.com", LastChoice: true,
		Run:     registry.Use{Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
		Decoder: formatters.Generic,
	}))
	writeFile(t, path, `{"bus-agent.runtimes.listed":`+good+`}`)
	all, warnings, err = preferences.Registry(t.Context(), base)
	if rt, _ := all.Lookup("listed"); err != nil || len(warnings) > 0 || rt.Executables[0] != "mine" || rt.LastChoice {
		t.Errorf("the runtime of the user is %+v, %q, %v", rt, warnings, err)
	}

	check(t, os.WriteFile(path, []byte("{"), 0o600))
	if _, _, err := preferences.Registry(t.Context(), base); err == nil {
		t.Error("a broken file causes no error")
	}
}
