package gemini

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

func TestSessionCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*registry.Invocation)
		want   string
		trust  string
	}{
		"write":       {func(*registry.Invocation) {}, "--acp", "false"},
		"read":        {func(inv *registry.Invocation) { inv.Access = agent.AccessRead }, "--acp", "false"},
		"full":        {func(inv *registry.Invocation) { inv.Access = agent.AccessFull }, "--acp", "false"},
		"model":       {func(inv *registry.Invocation) { inv.Model = "-pro" }, "--acp --model=-pro", "false"},
		"commands":    {func(inv *registry.Invocation) { inv.AllowCommands = []string{"ls"} }, "--acp --allowed-tools=run_shell_command(ls)", "false"},
		"directories": {func(inv *registry.Invocation) { inv.AddDirs = []string{"/a", "/b"} }, "--acp --include-directories=/a --include-directories=/b", "false"},
		"resume":      {func(inv *registry.Invocation) { inv.Resume = "id" }, "--acp", "false"},
		"arguments":   {func(inv *registry.Invocation) { inv.Args = []string{"--debug"} }, "--acp --debug", "false"},
		"trust":       {func(inv *registry.Invocation) { inv.TrustWorkspace = true }, "--acp --approval-mode default", "true"},
		"trust, read": {func(inv *registry.Invocation) { inv.TrustWorkspace, inv.Access = true, agent.AccessRead }, "--acp --approval-mode plan", "true"},
		"trust, full": {func(inv *registry.Invocation) { inv.TrustWorkspace, inv.Access = true, agent.AccessFull }, "--acp --approval-mode yolo", "true"},
		"trust alone": {func(inv *registry.Invocation) { inv.TrustWorkspace, inv.Access = true, "" }, "--acp --approval-mode default", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.Invocation{Prompt: "hello", Access: agent.AccessWrite}
			test.change(&r)
			got, err := sessionCommand(r)
			if err != nil || got.Stdin != "" {
				t.Errorf("stdin %q, %v", got.Stdin, err)
			}
			if diff := cmp.Diff(strings.Fields(test.want), got.Args); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := []string{"GEMINI_CLI_NO_RELAUNCH=true", trustEnv + "=" + test.trust}; !slices.Equal(got.Env, want) {
				t.Errorf("env %q, want %q", got.Env, want)
			}
		})
	}
	if err := conversation().Check(registry.Invocation{AllowCommands: []string{"a,b"}}); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
}

func TestSessionModes(t *testing.T) {
	t.Parallel()
	for _, trust := range []bool{false, true} {
		e := newEngine(registry.Invocation{TrustWorkspace: trust}).(*acp.Engine)
		want := map[agent.Access]string{agent.AccessRead: "plan", agent.AccessWrite: "default", agent.AccessFull: "default"}
		if trust {
			want = map[agent.Access]string{agent.AccessRead: "plan", agent.AccessWrite: "default", agent.AccessFull: "yolo"}
		}
		if diff := cmp.Diff(want, e.Modes); diff != "" {
			t.Errorf("trust %v (-want +got):\n%s", trust, diff)
		}
		for access, want := range map[agent.Access][]string{agent.AccessRead: nil, agent.AccessWrite: {"edit"}, agent.AccessFull: {"edit", "execute", "other", ""}} {
			for _, kind := range []string{"edit", "execute", "other", ""} {
				if got := e.Permits(access, kind); got != slices.Contains(want, kind) {
					t.Errorf("%s permits %q: %v", access, kind, got)
				}
			}
		}
	}
}

func TestMessagesThatCouldBeCommands(t *testing.T) {
	t.Parallel()
	for text, guarded := range map[string]bool{
		"/help": true, "$help": true, " \t\n/help": true, "\ufeff/help": true, "\u2003$x": true,
		"hello /help": false, "-": false, "": false, "@file": false, " ": false,
	} {
		want := []string{text}
		if guarded {
			want = []string{"Message:\n", text}
		}
		if got := pieces(text); !slices.Equal(got, want) {
			t.Errorf("%q is sent as %q", text, got)
		}
	}
}

// prepareSession arranges a session in the root of the repository.
func (p *place) prepareSession(t *testing.T) registry.Setup {
	t.Helper()
	w := backendtest.Workspace(t, p.root)
	chain := w.Chain()
	p.req.Workdir, p.req.Root = chain.Workdir, chain.Root
	setup, err := prepareSession(t.Context(), p.req, w)
	if err != nil {
		t.Fatal(err)
	}
	return setup
}

func TestSessionWithoutTrust(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{
		"AGENTS.md": "Rules of the house.\n", ".gemini/settings.json": "{}",
		"~/.gemini/.env":          "GEMINI_API_KEY=x\n",
		"~/.env":                  "GEMINI_API_KEY=y\n",
		"~/.gemini/settings.json": `{"security":{"folderTrust":{"enabled":false}}}`,
	})
	p.req.Access = agent.AccessFull
	setup := p.prepareSession(t)
	home := homeIn(t, setup)
	text, err := os.ReadFile(filepath.Join(home, settingsPath))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Context struct {
			FileName []string `json:"fileName"`
		} `json:"context"`
		Security struct {
			FolderTrust struct{ Enabled bool } `json:"folderTrust"`
		} `json:"security"`
		Tools struct{ Exclude []string } `json:"tools"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !got.Security.FolderTrust.Enabled || !slices.Equal(got.Tools.Exclude, planTools) || !slices.Equal(got.Context.FileName, []string{"GEMINI.md"}) {
		t.Errorf("settings %s", text)
	}
	if !strings.Contains(setup.Prefix, "Rules of the house.\n") || !strings.HasSuffix(setup.Prefix, instructions.EndOfText) {
		t.Errorf("prefix %q", setup.Prefix)
	}
	if variables, err := os.ReadFile(filepath.Join(home, ".env")); err != nil || string(variables) != "GEMINI_API_KEY=x\n" {
		t.Errorf("variables %q, %v", variables, err)
	}
	if len(setup.Warnings) != 1 || !strings.Contains(setup.Warnings[0], "left out") {
		t.Errorf("warnings %q", setup.Warnings)
	}
	closeSetup(t, setup)
}

// An agent that replaces its home by a link does not make bus-agent change files there.
func TestTidyStaysInTheHome(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	setup := p.prepareSession(t)
	home := homeIn(t, setup)
	chats, empty := ".gemini/tmp/repo/chats", "session-2026-11-21T00-07-0123abcd.jsonl"
	recent := time.Now().UTC().Add(time.Minute).Format(sessionTime) + "-89abcdef.jsonl"
	for _, dir := range []string{home, p.home} {
		write(t, filepath.Join(dir, chats, empty), `{"sessionId":"x"}`)
		write(t, filepath.Join(dir, chats, recent), `{"type":"user"}`)
	}
	if err := errors.Join(os.Rename(home, home+"-moved"), os.Symlink(p.home, home)); err != nil {
		t.Fatal(err)
	}
	setup.Close(t.Context()) // warns, since the home is not found
	files, err := os.ReadDir(filepath.Join(p.home, chats))
	if err != nil || len(files) != 2 || files[0].Name() != empty || files[1].Name() != recent {
		t.Errorf("the files behind the link are now %v, %v", files, err)
	}
}

// A file is read for messages only if it is as short as one that Gemini CLI makes at its
// start.
func TestLongSessionFileIsNotRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	setup := p.prepareSession(t)
	const name = "session-2026-11-21T00-07-0123abcd.jsonl"
	write(t, filepath.Join(homeIn(t, setup), ".gemini/tmp/repo/chats", name), strings.Repeat(`{"sessionId":"x"}`+"\n", 1000))
	closeSetup(t, setup)
	if _, err := os.Stat(filepath.Join(p.root, homeParent, "sessions/tmp/repo/chats", name)); err != nil {
		t.Error(err)
	}
}

// What the history of a session has is not said again, and what has changed is.
func TestResumedSessionGetsTheInstructionsOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"AGENTS.md": "Rules <of> the house.\n"})
	setup := p.prepareSession(t)
	message, err := json.Marshal(setup.Prefix + "hello")
	if err != nil {
		t.Fatal(err)
	}
	const id = "0123abcd-0000-4000-8000-000000000000"
	metadata := `{"sessionId":"` + id + `","kind":"main"}` + "\n" + `{"$set":{"messages":[]}}` + "\n"
	chats := filepath.Join(homeIn(t, setup), ".gemini/tmp/repo/chats")
	name := "session-2026-11-21T00-07-0123abcd.jsonl"
	write(t, filepath.Join(chats, name), metadata+`{"type":"user","content":[{"text":`+string(message)+"}]}\n"+`{"type":"gemini","content":"ok"}`+"\n")
	now := time.Now().UTC()
	write(t, filepath.Join(chats, now.Format(sessionTime)+"-0123abcd.jsonl"), metadata)
	write(t, filepath.Join(chats, now.Add(time.Minute).Format(sessionTime)+"-89abcdef.jsonl"), "{}\n")
	closeSetup(t, setup)
	kept := filepath.Join(p.root, homeParent, "sessions/tmp/repo/chats")
	files, err := filepath.Glob(filepath.Join(kept, "*"))
	if err != nil || len(files) != 2 || filepath.Base(files[0]) != name {
		t.Fatalf("kept %q, %v", files, err)
	}
	if renamed := filepath.Base(files[1]); !createdAt(renamed).Before(time.Now().UTC().Truncate(time.Minute)) || !strings.HasSuffix(renamed, "-89abcdef.jsonl") {
		t.Errorf("a session of this minute is kept as %s", renamed)
	}

	p.req.Resume = id
	setup = p.prepareSession(t)
	if setup.Prefix != "" || setup.Resume != "" || !setup.SessionCreated.Equal(time.Date(2026, 11, 21, 0, 7, 0, 0, time.UTC)) {
		t.Errorf("prefix %q, session %s of %v", setup.Prefix, setup.Resume, setup.SessionCreated)
	}
	closeSetup(t, setup)
	write(t, filepath.Join(p.root, "AGENTS.md"), "Other rules.\n")
	setup = p.prepareSession(t)
	if !strings.Contains(setup.Prefix, "Other rules.") {
		t.Errorf("prefix %q", setup.Prefix)
	}
	closeSetup(t, setup)
}

func TestSessionInAHomeOfTheCaller(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"AGENTS.md": "Rules.\n", "~/.gemini/settings.json": "{}"})
	p.req.Env, p.req.Access = []string{homeEnv + "=" + p.home}, agent.AccessFull
	setup := p.prepareSession(t)
	if !strings.Contains(setup.Prefix, "Rules.") {
		t.Errorf("prefix %q", setup.Prefix)
	}
	p.req.Resume = "0123abcd-0000-4000-8000-000000000000"
	setup = p.prepareSession(t)
	if setup.Prefix != "" || setup.Resume != "" || !setup.SessionCreated.IsZero() {
		t.Errorf("resumed with %+v", setup)
	}
	p.req.RequireInstructions = true
	if setup = p.prepareSession(t); !strings.Contains(setup.Prefix, "Rules.") {
		t.Errorf("required when resumed: prefix %q", setup.Prefix)
	}
}

func TestNextMinute(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 50, 0, time.FixedZone("", 3600))
	for now, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 9 * time.Second: time.Second, 10*time.Second - 1: 1, 10 * time.Second: 0, time.Hour: 0, -time.Minute: 70 * time.Second,
	} {
		if got := nextMinute(created, created.Add(now)); got != want {
			t.Errorf("after %v it waits for %v", now, got)
		}
	}
}

// The title of a request is the command line if the text shows that it runs in the workdir.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[current working directory /w]":                    "ls",
		"[current working directory /w] (why) [background]": "ls",
		"[current working directory /]":                     "",
		"[current working directory ]":                      "",
		"[current working directory /w":                     "",
		"[in /tmp]":                                         "",
		"[in /tmp] ([current working directory /w])":        "",
		"":    "",
		"why": "",
	} {
		if got := commandLine("ls", text, engine.Start{Workdir: "/w"}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
