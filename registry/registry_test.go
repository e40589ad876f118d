package registry_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/google/go-cmp/cmp"
)

type lines struct{}

func (lines) Decode(line []byte, events []agent.Event) []agent.Event {
	return append(events, agent.Event{Kind: agent.KindText, Text: string(line)})
}

func echo(id string) registry.Runtime {
	return registry.Runtime{
		ID: id, Name: "Echo", Executables: []string{id}, InstallURL: "https://example.com/" + id,
		Run:     registry.Use{Command: func(inv registry.Invocation) (agent.Command, error) { return agent.Command{Stdin: inv.Prompt}, nil }},
		Decoder: func() formatters.Decoder { return lines{} },
	}
}

func TestRegisterRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(*registry.Runtime){
		"ID":          func(r *registry.Runtime) { r.ID = "Echo" },
		"Name":        func(r *registry.Runtime) { r.Name = "" },
		"Executables": func(r *registry.Runtime) { r.Executables = nil },
		"executable":  func(r *registry.Runtime) { r.Executables = []string{"./echo"} },
		"InstallURL":  func(r *registry.Runtime) { r.InstallURL = "" },
		"Command":     func(r *registry.Runtime) { r.Run.Command = nil },
		"Decoder":     func(r *registry.Runtime) { r.Decoder = nil },
		"variant":     func(r *registry.Runtime) { r.Variants = []string{"a:b"} },
		"twice":       func(r *registry.Runtime) { r.Variants = []string{"a", "a"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reg registry.Registry
			rt := echo("echo")
			breakIt(&rt)
			err := reg.Register(rt)
			if !errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("Register = %v, want ErrInvalid that names %s", err, name)
			}
			if len(reg.All()) != 0 {
				t.Error("the invalid runtime was registered")
			}
		})
	}
}

func TestRegisterTwiceNamesBothPlaces(t *testing.T) {
	t.Parallel()
	var reg registry.Registry
	if err := reg.Register(echo("echo")); err != nil {
		t.Fatal(err)
	}
	err := reg.Register(echo("echo"))
	if !errors.Is(err, registry.ErrDuplicate) || strings.Count(err.Error(), "registry_test.go:") != 2 {
		t.Errorf("Register = %v, want ErrDuplicate naming two places", err)
	}
}

func TestPackageRegisterPanicsWithTheError(t *testing.T) {
	t.Parallel()
	defer func() {
		err, ok := recover().(error)
		if !ok || !errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), "registry_test.go:") {
			t.Errorf("panic value = %v, want ErrInvalid with the place", err)
		}
	}()
	registry.Register(registry.Runtime{})
}

func TestRegisterFunc(t *testing.T) {
	t.Parallel()
	var reg registry.Registry
	calls := 0
	describe := func() registry.Runtime { calls++; return echo("echo") }
	if err := reg.RegisterFunc("echo", describe); err != nil || calls != 0 {
		t.Errorf("RegisterFunc = %v after %d calls", err, calls)
	}
	if err := reg.RegisterFunc("echo", describe); !errors.Is(err, registry.ErrDuplicate) || strings.Count(err.Error(), "registry_test.go:") != 2 {
		t.Errorf("RegisterFunc = %v, want ErrDuplicate naming two places", err)
	}
	if err := reg.RegisterFunc("Echo", describe); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("RegisterFunc = %v, want ErrInvalid", err)
	}
	clone := reg.Clone()
	for _, r := range []*registry.Registry{&reg, clone} {
		if rt, ok := r.Lookup("echo"); !ok || rt.Name != "Echo" || len(r.All()) != 1 {
			t.Errorf("Lookup = %+v, %v", rt, ok)
		}
	}
	if calls != 1 {
		t.Errorf("it was described %d times", calls)
	}
	for text, rt := range map[string]registry.Runtime{`the ID "other"`: echo("other"), "no Name": {ID: "echo"}} {
		var reg registry.Registry
		if err := reg.RegisterFunc("echo", func() registry.Runtime { return rt }); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				err, ok := recover().(error)
				if !ok || !errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), "registry_test.go:") || !strings.Contains(err.Error(), text) {
					t.Errorf("panic value = %v, want ErrInvalid with the place and %q", err, text)
				}
			}()
			reg.All()
		}()
	}
}

func ExampleRegistry_RegisterFunc() {
	var reg registry.Registry
	err := reg.RegisterFunc("echo", func() registry.Runtime {
		fmt.Println("described")
		return echo("echo")
	})
	fmt.Println("registered", err)
	reg.Lookup("echo")
	reg.Lookup("echo")
	// Output:
	// registered <nil>
	// described
}

func TestTokens(t *testing.T) {
	t.Parallel()
	var reg registry.Registry
	b := echo("b")
	b.Variants = []string{"local"}
	for _, rt := range []registry.Runtime{b, echo("c"), echo("a")} {
		if err := reg.Register(rt); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "b:local", "c"}, reg.Tokens()); diff != "" {
		t.Error(diff)
	}
	for token, want := range map[string]string{"a": "a/", "b": "b/", "b:local": "b/local"} {
		rt, variant, err := reg.ParseToken(token)
		if got := rt.ID + "/" + variant; err != nil || got != want {
			t.Errorf("ParseToken(%q) = %s, %v, want %s", token, got, err, want)
		}
	}
	for _, token := range []string{"", "d", "A", "a:", "a:local", "b:", "b:other", "b:local:x", " b"} {
		if _, _, err := reg.ParseToken(token); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "a, b, b:local, c") {
			t.Errorf("ParseToken(%q) = %v, want a usage error that lists the tokens", token, err)
		}
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var reg registry.Registry
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := reg.Register(echo(fmt.Sprintf("r%d", i))); err != nil {
				t.Error(err)
			}
			reg.All()
			reg.Lookup("r1")
		})
	}
	wg.Wait()
	if n := len(reg.All()); n != 50 {
		t.Errorf("%d runtimes registered, want 50", n)
	}
}

func ExampleRegistry() {
	var reg registry.Registry
	if err := reg.Register(echo("echo")); err != nil {
		panic(err)
	}
	rt, _, err := reg.ParseToken("echo")
	fmt.Println(rt.Name, rt.InstallURL, err)
	// Output: Echo https://example.com/echo <nil>
}

func TestRefusedRuntimesSayWhy(t *testing.T) {
	t.Parallel()
	base := new(registry.Registry)
	if err := base.Register(echo("known")); err != nil {
		t.Fatal(err)
	}
	r := base.Clone()
	r.Refuse("mine", errors.New("it is broken"))
	if _, _, err := r.ParseToken("mine"); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), `runtime "mine" cannot be used: it is broken`) {
		t.Errorf("ParseToken = %v", err)
	}
	r.Refuse("known", errors.New("doubled"))
	if _, _, err := r.ParseToken("known"); err != nil {
		t.Errorf("a registered runtime is refused: %v", err)
	}
	if _, _, err := r.ParseToken("known:x"); err == nil || strings.Contains(err.Error(), "doubled") {
		t.Errorf("ParseToken = %v, want an unknown variant", err)
	}
	if err := r.Register(echo("mine")); err != nil {
		t.Fatal(err)
	}
	if err := r.Refused("mine"); err != nil {
		t.Errorf("a runtime that was registered later is refused: %v", err)
	}
	r.Refuse("other", errors.New("it is broken"))
	changed := echo("mine")
	changed.Executables = []string{"changed"}
	if err := r.Replace(changed); err != nil || r.Refused("other") == nil {
		t.Errorf("Replace = %v", err)
	}
	if rt, _ := r.Lookup("mine"); rt.Executables[0] != "changed" || len(r.All()) != 2 {
		t.Errorf("replaced by %+v", rt)
	}
	if err := r.Replace(echo("absent")); err == nil {
		t.Error("an absent runtime was replaced")
	}
	if base.Refused("mine") != nil || len(base.All()) != 1 {
		t.Error("a clone changes its origin")
	}
}
