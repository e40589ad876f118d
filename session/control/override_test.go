package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// preference is preferences in memory, in JSON.
type preference map[string]string

func (p preference) Get(_ context.Context, key string) (json.RawMessage, bool, error) {
	value, ok := p[key]
	return json.RawMessage(value), ok, nil
}

func TestRuntimeOverrides(t *testing.T) {
	t.Parallel()
	const users = `{"default":"other","runtimes":{"talker":{"bin":"talker","delivery":"rpc"},"other":{"bin":"/tmp/evil"}}}`
	entry := func(id, fields string) string { return `{"runtimes":{"` + id + `":{` + fields + `}}}` }
	for name, c := range map[string]struct {
		user, rig string
		environ   string
		stored    string // the preference
		call      string
		token     string
		source    string // the end of it
		err       error
		warning   string
	}{
		"none":                           {token: "mute", source: "first available"},
		"the user's":                     {user: `{"default":"talker:local"}`, token: "talker:local", source: "home/.gastown/runtimes.json"},
		"the rig's wins":                 {user: users, rig: `{"runtime":"talker"}`, token: "talker", source: "rig/.gastown/runtime.json", warning: `: ignoring bin "/tmp/evil" of "other"; only`},
		"the rig's beats a preference":   {rig: `{"runtime":"other"}`, stored: `"talker"`, token: "other", source: "rig/.gastown/runtime.json"},
		"a preference beats the user's":  {user: `{"default":"other"}`, stored: `"talker"`, token: "talker", source: "bus-agent.runtime"},
		"another way to become ready":    {user: entry("talker", `"ready":"prompt"`), token: "mute", source: "first available", warning: `ignoring ready "prompt" of "talker"`},
		"another delivery":               {user: entry("talker", `"delivery":"tmux"`), token: "mute", source: "first available", warning: `ignoring delivery "tmux" of "talker"`},
		"settings of an unknown runtime": {user: entry("stranger", `"bin":"x","ready":"y","delivery":"z"`), token: "mute", source: "first available", warning: `ignoring bin "x", ready "y", delivery "z" of "stranger"`},
		"a variable wins":                {rig: `{"runtime":"other"}`, environ: "BUS_AGENT=talker", token: "talker", source: "BUS_AGENT"},
		"the call wins":                  {rig: `{"runtime":"other"}`, call: "talker", token: "talker", source: "call"},
		"an unknown runtime":             {rig: `{"runtime":"evil"}`, err: agent.ErrUsage},
		"no JSON":                        {rig: `{"runtime"`, token: "mute", source: "first available", warning: "rig/.gastown/runtime.json is not used: "},
		"of another shape":               {user: `{"default":1}`, token: "mute", source: "first available", warning: "home/.gastown/runtimes.json is not used: "},
		"is empty":                       {user: `{}`, rig: `{}`, token: "mute", source: "first available"},
		"settings of a rig":              {rig: `{"runtime":"talker","bin":"evil","ready":"prompt"}`, token: "talker", source: "runtime.json", warning: `runtime.json: ignoring bin "evil", ready "prompt"; only "runtime" has an effect`},
		"settings of a rig, the same":    {rig: `{"runtime":"talker:local","bin":"talker"}`, token: "talker:local", source: "runtime.json"},
		"only settings of a rig":         {rig: `{"bin":"evil"}`, token: "mute", source: "first available", warning: `runtime.json: ignoring bin "evil"; only`},
		"too long to be a setting":       {rig: `{"runtime":"` + strings.Repeat("x", 70<<10) + `"}`, token: "mute", source: "first available", warning: "file is too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			workdir, home := filepath.Join(dir, "rig", "polecats", "ivy"), filepath.Join(dir, "home")
			for _, d := range []string{workdir, home} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if c.user != "" {
				write(t, filepath.Join(home, ".gastown", "runtimes.json"), c.user)
			}
			if c.rig != "" {
				write(t, filepath.Join(dir, "rig", ".gastown", "runtime.json"), c.rig)
			}
			b := newBench(t, c.environ)
			choices, warnings := control.FindRuntimeOverrides([]string{"HOME=" + home}, workdir, b.Runner.Registry)
			if got := strings.Join(warnings, "\n"); !strings.Contains(got, c.warning) || (got == "") != (c.warning == "") {
				t.Errorf("warnings %q", got)
			}
			if c.stored != "" {
				b.Runner.Preferences = preference{runner.KeyRuntime: c.stored}
			}
			selection, err := control.WithRuntimeOverrides(b.Runner, choices).Resolve(t.Context(), c.call)
			if !errors.Is(err, c.err) || selection.Token != c.token || !strings.HasSuffix(selection.Source, c.source) {
				t.Errorf("%s by %s, %v", selection.Token, selection.Source, err)
			}
			if c.err != nil && !strings.Contains(err.Error(), "runtime.json: ") {
				t.Errorf("%v does not say where", err)
			}
			if b.Runner.Sources != nil || (b.Runner.Preferences != nil) != (c.stored != "") {
				t.Error("the runner itself was changed")
			}
		})
	}
}

func TestIdentityOf(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]string{
		"GT_SESSION_ID=a GT_SESSION_ID_ENV=X X=b N=c": "a",
		"GT_SESSION_ID_ENV=X X=b N=c":                 "b",
		"GT_SESSION_ID_ENV=X N=c":                     "c",
		"GT_SESSION_ID= N=c":                          "c",
		"":                                            "",
	} {
		if got := control.IdentityOf(strings.Fields(environ), "N").SessionID; got != want {
			t.Errorf("%s: %q, want %q", environ, got, want)
		}
	}
	id := control.IdentityOf([]string{"GT_ROLE=r", "GT_RIG=g", "GT_POLECAT=p", "BD_ACTOR=a", "GT_WORKDIR=/w", "GT_SESSION_ID=s"}, "")
	if want := (control.Identity{SessionID: "s", Role: "r", Rig: "g", Polecat: "p", Actor: "a"}); id != want {
		t.Errorf("%+v", id)
	}
	environ := id.Environ("N", "/w")
	if back := control.IdentityOf(environ, ""); back != id {
		t.Errorf("%+v", back)
	}
	if dir, _ := agent.LookupEnv(environ, control.EnvWorkdir); dir != "/w" {
		t.Errorf("the workdir is %q", dir)
	}
	if got := (control.Identity{}).Environ("N", ""); len(got) > 0 {
		t.Errorf("the zero Identity sets %q", got)
	}
}
