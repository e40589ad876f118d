package gemini

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// A place is a repository and a user's home next to it.
type place struct {
	root, home string
	req        registry.Invocation
}

// newPlace makes a place with files: those that begin with "~/" are in the
// home; a content that begins with "->" is a link.
func newPlace(t *testing.T, files map[string]string) *place {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{root: filepath.Join(top, "repo"), home: filepath.Join(top, "home")}
	write(t, filepath.Join(p.root, ".git/HEAD"), "ref: refs/heads/main\n")
	if err := os.MkdirAll(filepath.Join(p.root, "sub/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		file := filepath.Join(p.root, name)
		if own, ok := strings.CutPrefix(name, "~/"); ok {
			file = filepath.Join(p.home, own)
		}
		if target, ok := strings.CutPrefix(content, "->"); ok {
			if err := os.Symlink(target, file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, file, content)
	}
	p.req.Environ = []string{"HOME=" + p.home}
	return p
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// prepare arranges a run in a directory of the repository.
func (p *place) prepare(t *testing.T, dir string) (registry.Setup, error) {
	t.Helper()
	w := backendtest.Workspace(t, filepath.Join(p.root, dir))
	chain := w.Chain()
	p.req.Workdir, p.req.Root = chain.Workdir, chain.Root
	return prepare(t.Context(), p.req, w)
}

func (p *place) mustPrepare(t *testing.T, dir string) registry.Setup {
	t.Helper()
	setup, err := p.prepare(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return setup
}

func homeIn(t *testing.T, setup registry.Setup) string {
	t.Helper()
	home, ok := agent.LookupEnv(setup.Env, homeEnv)
	if !ok {
		t.Fatalf("env %q has no home", setup.Env)
	}
	return home
}

// homeSettings are the settings of a private home that matter here.
type homeSettings struct {
	Tools   struct{ Exclude []string }
	General struct{ MaxAttempts int }
	Context struct {
		FileName []string `json:"fileName"`
		Markers  []string `json:"memoryBoundaryMarkers"`
		Other    int      `json:"other"`
	} `json:"context"`
	Advanced struct {
		IgnoreLocalEnv bool `json:"ignoreLocalEnv"`
	} `json:"advanced"`
	Model struct {
		Name  string `json:"name"`
		Turns int    `json:"maxSessionTurns"`
	} `json:"model"`
	Security struct {
		Auth struct {
			Type string `json:"selectedType"`
		} `json:"auth"`
	} `json:"security"`
}

func settingsOf(t *testing.T, setup registry.Setup) homeSettings {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(homeIn(t, setup), settingsPath))
	if err != nil {
		t.Fatal(err)
	}
	var s homeSettings
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return s
}

// A user who trusts every folder has not trusted the repository for bus-agent.
func TestRunWithoutTrustTurnsFolderTrustOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{
		"~/.gemini/settings.json": `{"security":{"folderTrust":{"enabled":false}}}`,
		"~/.gemini/.env":          "GEMINI_API_KEY=x\n",
	})
	for _, trust := range []bool{false, true} {
		p.req.TrustWorkspace = trust
		setup := p.mustPrepare(t, "")
		home := homeIn(t, setup)
		all, err := readObject(filepath.Join(home, settingsPath))
		if err != nil {
			t.Fatal(err)
		}
		if enabled, err := all.get("security", "folderTrust", "enabled"); err != nil || (string(enabled) == "true") == trust {
			t.Errorf("trust %t: folder trust %s, %v", trust, enabled, err)
		}
		// In an untrusted folder the CLI reads a login here only.
		if text, err := os.ReadFile(filepath.Join(home, ".env")); (err == nil && string(text) == "GEMINI_API_KEY=x\n") == trust {
			t.Errorf("trust %t: .env %q, %v", trust, text, err)
		}
		closeSetup(t, setup)
	}
}

func closeSetup(t *testing.T, setup registry.Setup) {
	t.Helper()
	if warnings := setup.Close(t.Context()); len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
}

func TestPrivateHome(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{
		"AGENTS.md":                  "ROOT\n",
		"~/.gemini/settings.json":    `{ // mine` + "\n" + `"context":{"fileName":["CONTEXT.md"],"other":1,"memoryBoundaryMarkers":["x"]},"model":{"name":"m"},"security":{"auth":{"selectedType":"oauth-personal"}}}`,
		"~/.gemini/oauth_creds.json": "{}", "~/.gemini/.env": "A=b\n", "~/.gemini/CONTEXT.md": "GLOBAL\n", "~/.gemini/policies/deny.toml": "",
		"~/.gemini/extensions/x/gemini-extension.json": "{}",
	})
	p.req.MaxTurns = 4
	p.req.Environ = append(p.req.Environ, "GEMINI_API_KEY=k", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:1")
	setup := p.mustPrepare(t, "sub")
	home := homeIn(t, setup)
	if filepath.Dir(home) != filepath.Join(p.root, "sub/.gemini/bus") {
		t.Errorf("home %s", home)
	}
	s := settingsOf(t, setup)
	if diff := cmp.Diff([]string{"CONTEXT.md", "AGENTS.md"}, s.Context.FileName); diff != "" {
		t.Error(diff)
	}
	if !s.Advanced.IgnoreLocalEnv || s.Context.Other != 1 || s.Context.Markers != nil || s.Model.Name != "m" || s.Model.Turns != 4 || s.Security.Auth.Type != "oauth-personal" {
		t.Errorf("settings %+v", s)
	}
	for _, name := range []string{"oauth_creds.json", ".env", "CONTEXT.md", "policies/deny.toml"} {
		want := filepath.Join(p.home, ".gemini", name)
		if got, err := filepath.EvalSymlinks(filepath.Join(home, ".gemini", name)); err != nil || got != want {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"google_accounts.json", "extensions"} {
		if _, err := os.Lstat(filepath.Join(home, ".gemini", name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s exists: %v", name, err)
		}
	}
	closeSetup(t, setup)
	if _, err := os.Lstat(filepath.Join(p.root, "sub/.gemini")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was left behind: %v", err)
	}
	if _, err := os.Stat(filepath.Join(p.home, ".gemini/oauth_creds.json")); err != nil {
		t.Errorf("the login is gone: %v", err)
	}
}

func TestKeyIsSelectedWithABaseURL(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	p.req.Environ = append(p.req.Environ, "GEMINI_API_KEY=k", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:1")
	setup := p.mustPrepare(t, "")
	defer closeSetup(t, setup)
	if got := settingsOf(t, setup).Security.Auth.Type; got != "gemini-api-key" {
		t.Errorf("login %q", got)
	}
}

// Each AGENTS.md once, natively or through the home.
func TestInstructionsReachTheModelOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string // markers in the home's own file; nil means native discovery
		after []string // markers before the prompt, behind what the CLI reads itself
	}{
		{"nothing", nil, nil, nil},
		{"every directory", map[string]string{"AGENTS.md": "ROOT\n", "sub/AGENTS.md": "SUB\n", "sub/deep/AGENTS.md": "DEEP\n", "GEMINI.md": "OWN\n"}, nil, nil},
		{"linked", map[string]string{"AGENTS.md": "ROOT\n", "GEMINI.md": "->AGENTS.md"}, nil, nil},
		{"linked above an import", map[string]string{"AGENTS.md": "ROOT\n", "GEMINI.md": "->AGENTS.md", "sub/AGENTS.md": "SUB\n", "sub/GEMINI.md": "@AGENTS.md\n", "sub/deep/AGENTS.md": "DEEP\n"}, []string{}, []string{"DEEP"}},
		{"a link to the other", map[string]string{"AGENTS.md": "->GEMINI.md", "GEMINI.md": "ROOT\n", "sub/AGENTS.md": "SUB\n", "sub/GEMINI.md": "@AGENTS.md\n"}, []string{}, nil},
		{"linked above a false root", map[string]string{"AGENTS.md": "ROOT\n", "GEMINI.md": "->AGENTS.md", "sub/.git": "", "sub/AGENTS.md": "SUB\n"}, []string{"ROOT", "SUB"}, nil},
		{"imported above a false root", map[string]string{"AGENTS.md": "ROOT\n", "GEMINI.md": "@AGENTS.md", "sub/.git": "", "sub/AGENTS.md": "SUB\n"}, []string{"ROOT", "SUB"}, nil},
		{"mentioned in code", map[string]string{"AGENTS.md": "ROOT\n", "GEMINI.md": "use `@AGENTS.md` or\n```\n@AGENTS.md\n```\n"}, nil, nil},
		{"another file imported", map[string]string{"AGENTS.md": "ROOT\n", "GEMINI.md": "@docs/AGENTS.md x@AGENTS.md\n"}, nil, nil},
		{"imported", map[string]string{"AGENTS.md": "ROOT\n", "sub/AGENTS.md": "SUB\n", "GEMINI.md": "see @./AGENTS.md now\n"}, []string{}, []string{"SUB"}},
		{"imported from below", map[string]string{"AGENTS.md": "ROOT\n", "sub/AGENTS.md": "SUB\n", "sub/GEMINI.md": "@../AGENTS.md\n"}, []string{}, []string{"SUB"}},
		{"inner one imported", map[string]string{"AGENTS.md": "ROOT\n", "sub/AGENTS.md": "SUB\n", "sub/deep/AGENTS.md": "DEEP\n", "sub/GEMINI.md": "@AGENTS.md\n"}, []string{"ROOT"}, []string{"DEEP"}},
		{"all imported", map[string]string{"AGENTS.md": "ROOT\n", "GEMINI.md": "@AGENTS.md\n"}, []string{}, nil},
		{"copied", map[string]string{"AGENTS.md": "ROOT\n", "sub/AGENTS.md": "SUB\n", "GEMINI.md": "ROOT\n"}, []string{}, []string{"SUB"}},
		{"too long", map[string]string{"AGENTS.md": strings.Repeat("ROOT\n", 60_000), "sub/AGENTS.md": "SUB\n"}, []string{"SUB"}, nil},
		{"false repository root", map[string]string{"AGENTS.md": "ROOT\n", "sub/.git": "", "sub/AGENTS.md": "SUB\n"}, []string{"ROOT", "SUB"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, test.files)
			setup := p.mustPrepare(t, "sub/deep")
			defer closeSetup(t, setup)
			names := settingsOf(t, setup).Context.FileName
			for _, marker := range []string{"ROOT", "SUB", "DEEP"} {
				want := 0
				if slices.Contains(test.after, marker) {
					want = 1
				}
				if n := strings.Count(setup.Prefix, marker+"\n"); n != want {
					t.Errorf("%s occurs %d times before the prompt, want %d", marker, n, want)
				}
			}
			switch {
			case test.want == nil:
				if diff := cmp.Diff([]string{"GEMINI.md", "AGENTS.md"}, names); diff != "" {
					t.Error(diff)
				}
				return
			case len(test.want) == 0:
				if diff := cmp.Diff([]string{"GEMINI.md"}, names); diff != "" {
					t.Error(diff)
				}
				return
			}
			if len(names) != 2 || slices.Contains(names, "AGENTS.md") {
				t.Fatalf("names %q", names)
			}
			text, err := os.ReadFile(filepath.Join(homeIn(t, setup), ".gemini", names[1]))
			if err != nil || len(text) > instructions.MaxBytes {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			for _, marker := range test.want {
				if n := strings.Count(string(text), marker+"\n"); n != 1 {
					t.Errorf("%s occurs %d times", marker, n)
				}
			}
			if test.name != "too long" && strings.Contains(string(text), "ROOT") != slices.Contains(test.want, "ROOT") {
				t.Errorf("text %q", text)
			}
		})
	}
}

func TestAHomeInsideTheRepositoryIsNotTrusted(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"h/.gemini/settings.json": `{"model":{"name":"evil"}}`, "h/.gemini/oauth_creds.json": "{}"})
	p.req.Environ = []string{"HOME=" + filepath.Join(p.root, "h")}
	setup := p.mustPrepare(t, "")
	defer closeSetup(t, setup)
	if s := settingsOf(t, setup); s.Model.Name != "" || len(setup.Warnings) != 1 {
		t.Errorf("settings %+v, warnings %q", s, setup.Warnings)
	}
	if _, err := os.Lstat(filepath.Join(homeIn(t, setup), ".gemini/oauth_creds.json")); err == nil {
		t.Error("the login was linked")
	}
}

func TestUserSettingsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", "[]", "null", `{"context":7}`, `{"context":{"fileName":7}}`, `{"advanced":[]}`} {
		p := newPlace(t, map[string]string{"~/.gemini/settings.json": text})
		_, err := p.prepare(t, "")
		if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), filepath.Join(p.home, settingsPath)) {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := os.Lstat(filepath.Join(p.root, ".gemini")); err == nil {
			t.Errorf("%s: something was left behind", text)
		}
	}
}

func TestTrustedWorkspace(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"AGENTS.md": "ROOT\n", ".gemini/settings.json": "{\n  // ours\n  \"x\": 1\n}\n"})
	setup := p.mustPrepare(t, "")
	if len(setup.Warnings) != 1 || !strings.Contains(setup.Warnings[0], ".gemini/settings.json is left out") {
		t.Errorf("warnings %q", setup.Warnings)
	}
	closeSetup(t, setup)

	p.req.TrustWorkspace = true
	setup = p.mustPrepare(t, "")
	if s := settingsOf(t, setup); s.Advanced.IgnoreLocalEnv || len(setup.Warnings) != 0 {
		t.Errorf("settings %+v, warnings %q", s, setup.Warnings)
	}
	closeSetup(t, setup)
	all, err := readObject(filepath.Join(p.root, settingsPath))
	if err != nil {
		t.Fatal(err)
	}
	context, err := all.part("context")
	if err != nil {
		t.Fatal(err)
	}
	if names, err := contextNames(context["fileName"]); err != nil || !slices.Equal(names, []string{"GEMINI.md", "AGENTS.md"}) {
		t.Errorf("names %q, %v", names, err)
	}
	if text, err := os.ReadFile(filepath.Join(p.root, ".geminiignore")); err != nil || !strings.Contains(string(text), "/.gemini/bus/\n") {
		t.Errorf(".geminiignore %q, %v", text, err)
	}
	if _, err := instructions.Clean(t.Context(), p.root, Runtime().Instructions.Owned); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(p.root, settingsPath)); err != nil || string(text) != "{\n  // ours\n  \"x\": 1\n}\n" {
		t.Errorf("after the clean-up %q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(p.root, ".geminiignore")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf(".geminiignore after the clean-up: %v", err)
	}
}

func TestSessionsAreKeptAndFoundAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	setup := p.mustPrepare(t, "")
	home := homeIn(t, setup)
	const chats = ".gemini/tmp/repo/chats/"
	write(t, filepath.Join(home, chats+"session-2026-11-21T00-07-0123abcd.jsonl"), "first")
	write(t, filepath.Join(home, chats+"session-2026-11-21T00-08-89abcdef.jsonl"), "second")
	write(t, filepath.Join(home, ".gemini/tmp/repo/.project_root"), p.root)
	write(t, filepath.Join(home, ".gemini/tmp/repo/logs.json"), "[]")
	write(t, filepath.Join(home, ".gemini/projects.json"), "{}")
	closeSetup(t, setup)

	p.req.Resume = "0123abcd-0000-4000-8000-000000000000"
	setup = p.mustPrepare(t, "")
	if setup.Resume != "" {
		t.Errorf("resumes %q", setup.Resume)
	}
	home = homeIn(t, setup)
	for name, want := range map[string]string{
		chats + "session-2026-11-21T00-07-0123abcd.jsonl": "first", ".gemini/tmp/repo/.project_root": p.root, ".gemini/projects.json": "{}",
	} {
		if got, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, name := range []string{chats + "session-2026-11-21T00-08-89abcdef.jsonl", ".gemini/tmp/repo/logs.json"} {
		if _, err := os.Lstat(filepath.Join(home, name)); err == nil {
			t.Errorf("%s was copied too", name)
		}
	}
	closeSetup(t, setup)

	p.req.Resume, p.req.Continue = "", true
	setup = p.mustPrepare(t, "")
	if setup.Resume != "latest" {
		t.Errorf("resumes %q", setup.Resume)
	}
	closeSetup(t, setup)

	for _, id := range []string{"ffffffff-0000-4000-8000-000000000000", "short", "../../x"} {
		p.req.Resume, p.req.Continue = id, false
		if _, err := p.prepare(t, ""); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestNothingToContinue(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	p.req.Continue = true
	if _, err := p.prepare(t, ""); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(filepath.Join(p.root, ".gemini")); err == nil {
		t.Error("something was left behind")
	}
}

func TestAReplacedLoginIsLeftForTheUser(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"~/.gemini/oauth_creds.json": "old"})
	setup := p.mustPrepare(t, "")
	login := filepath.Join(homeIn(t, setup), ".gemini/oauth_creds.json")
	if err := os.Remove(login); err != nil {
		t.Fatal(err)
	}
	write(t, login, "new")
	warnings := setup.Close(t.Context())
	if len(warnings) != 1 || !strings.Contains(warnings[0], login) {
		t.Errorf("warnings %q", warnings)
	}
	if got, err := os.ReadFile(login); err != nil || string(got) != "new" {
		t.Errorf("login %q, %v", got, err)
	}
}

func TestAHomeOfTheCallers(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"AGENTS.md": "ROOT\n", "h/x": "", "~/x": ""})
	for _, test := range []struct {
		home  string
		trust bool
		turns int
		ok    bool
	}{
		{p.home, false, 0, true}, {p.home, false, 1, false}, {p.home + "/missing", false, 0, false},
		{filepath.Join(p.root, "h"), false, 0, false}, {"h", false, 0, false}, {"h", true, 0, true}, {"", true, 0, false},
	} {
		p.req.Env = []string{homeEnv + "=" + test.home}
		p.req.TrustWorkspace, p.req.MaxTurns, p.req.Access = test.trust, test.turns, agent.AccessFull
		setup, err := p.prepare(t, "")
		if ok := err == nil; ok != test.ok || err != nil && !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%+v: %v", test, err)
		}
		if test.ok && (strings.Count(setup.Prefix, "ROOT") != 1 || len(setup.Env) != 0) {
			t.Errorf("%+v: prefix %q, env %q", test, setup.Prefix, setup.Env)
		}
	}
}

func TestAHomeWhereTheWorkdirCannotBeWritten(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{".gemini": "a file", "AGENTS.md": "ROOT\n"})
	temp := t.TempDir()
	p.req.TempDir = filepath.Join(temp, "run")
	setup := p.mustPrepare(t, "")
	home := homeIn(t, setup)
	if !strings.HasPrefix(home, temp) || strings.HasPrefix(home, p.req.TempDir) || len(setup.Warnings) != 1 {
		t.Errorf("home %s, warnings %q, want a temporary one next to the run's files and a warning", home, setup.Warnings)
	}
	closeSetup(t, setup)
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	p.req.Resume = "0aea6599-96b4-44d1-9362-54d196cd90ed"
	if _, err := p.prepare(t, ""); err == nil {
		t.Error("a session was resumed that cannot be kept")
	}
}

func TestAccessIsHeldByTheSettings(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"~/.gemini/settings.json": `{"tools":{"exclude":["mine","exit_plan_mode"],"other":1},"general":{"maxAttempts":7}}`})
	for access, want := range map[agent.Access][]string{
		agent.AccessRead:  {"mine", "exit_plan_mode", "enter_plan_mode"},
		agent.AccessWrite: {"mine", "exit_plan_mode", "enter_plan_mode"},
		agent.AccessFull:  {"mine", "exit_plan_mode"},
	} {
		p.req.Access = access
		setup := p.mustPrepare(t, "")
		s := settingsOf(t, setup)
		if diff := cmp.Diff(want, s.Tools.Exclude); diff != "" || s.General.MaxAttempts != 7 {
			t.Errorf("%s: %d attempts, excluded:\n%s", access, s.General.MaxAttempts, diff)
		}
		closeSetup(t, setup)
	}
	p = newPlace(t, nil)
	setup := p.mustPrepare(t, "")
	defer closeSetup(t, setup)
	if s := settingsOf(t, setup); s.General.MaxAttempts != 3 || len(s.Tools.Exclude) != 2 {
		t.Errorf("settings without any of the user: %+v", s)
	}
	p.req.Env = []string{homeEnv + "=" + p.home}
	if err := os.MkdirAll(p.home, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := p.prepare(t, ""); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a home that cannot hold the access: %v", err)
	}
}

// Where the folders below cannot be checked, no name that a repository can foresee
// makes Gemini CLI read a file there.
func TestUncheckedFoldersAreNotRead(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		p := newPlace(t, map[string]string{"AGENTS.md": "root\n", "GEMINI.md": "more\n", "~/.gemini/GEMINI.md": "mine\n"})
		chain, err := instructions.Discover(p.root)
		if err != nil {
			t.Fatal(err)
		}
		chain.Unchecked = true
		w, err := instructions.Open(chain, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		p.req.Workdir, p.req.Root, p.req.TrustWorkspace = chain.Workdir, chain.Root, trusted
		setup, err := prepare(t.Context(), p.req, w)
		if err != nil {
			t.Fatal(err)
		}
		names := settingsOf(t, setup).Context.FileName
		if known := slices.Contains(names, "GEMINI.md") || slices.Contains(names, "AGENTS.md"); known != trusted || len(names) == 0 {
			t.Errorf("trusted %t: it reads %q", trusted, names)
		}
		again, err := prepare(t.Context(), p.req, w)
		if err != nil {
			t.Fatal(err)
		}
		if same := slices.Equal(names, settingsOf(t, again).Context.FileName); same != trusted {
			t.Errorf("trusted %t: equal names twice: %q", trusted, names)
		}
		if holds := strings.Contains(setup.Prefix, "root\n"); holds == trusted {
			t.Errorf("trusted %t: before the prompt: %q", trusted, setup.Prefix)
		}
		if left := slices.ContainsFunc(setup.Warnings, func(w string) bool { return strings.Contains(w, "left out") }); left == trusted {
			t.Errorf("trusted %t: warnings %q", trusted, setup.Warnings)
		}
		p.req.Access, p.req.Env = agent.AccessFull, []string{homeEnv + "=" + p.home}
		if _, err := prepare(t.Context(), p.req, w); (err == nil) != trusted {
			t.Errorf("trusted %t, with a home of the caller's: %v", trusted, err)
		}
	}
}

// A run's own context file has a stable name: a link of the repository's under it
// would be read, and is refused.
func TestLinkUnderTheNameOfAPrivateFileIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"AGENTS.md": strings.Repeat("a rule\n", 60_000)})
	p.req.Workdir, p.req.Root = p.root, p.root
	chain, err := instructions.Discover(p.root)
	if err != nil {
		t.Fatal(err)
	}
	setup, err := p.prepare(t, "")
	if err != nil {
		t.Fatal(err)
	}
	names := settingsOf(t, setup).Context.FileName
	private := names[len(names)-1]
	if !strings.HasPrefix(private, privatePrefix) {
		t.Fatalf("it reads %q", names)
	}
	if _, err := chain.CheckReads(t.Context(), reads(p.req), false); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(p.root, private))); err != nil {
		t.Fatal(err)
	}
	if _, err := chain.CheckReads(t.Context(), reads(p.req), false); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), private) {
		t.Errorf("a link under the name: %v", err)
	}
}
