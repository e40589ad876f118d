package described_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/runner"
)

// homeDefinition describes a CLI that prints its settings and its login, and writes the
// session "s-1".
const homeDefinition = `{"executables":["mine"],"install_url":"https://example.com","instructions":"native",
	"args":["{access}","--home={home}","--resume={resume}","{continue}"],"continue":["--continue"],
	"access":{"read":{"args":["-r"],"files":{"settings.json":"{\"edit\":false}"}},"write":["-w"],"full":["-f"]},
	"home":{"env":"MINE_HOME","folder":".mine","logins":["auth.json"],"files":{"settings.json":"{}","sub/more":"{home}"},"sessions":["sessions/*"]},
	"env":{"MINE_MORE":"{home}/sub/more"}}`

const homeProgram = `#!/bin/sh
echo "$@" | /bin/sed "s|$MINE_HOME|HOME|"
/bin/cat "$MINE_HOME/settings.json" "$MINE_HOME/auth.json" "$MINE_MORE"
echo
if test -e "$MINE_HOME/sessions"; then /bin/ls "$MINE_HOME/sessions"; fi
/bin/mkdir -p "$MINE_HOME/sessions"
echo x >"$MINE_HOME/sessions/s-1.json"
`

// A homeBench runs that CLI.
type homeBench struct {
	*runner.Runner
	home, repo string
}

func newHomeBench(t *testing.T) homeBench {
	t.Helper()
	b := homeBench{home: t.TempDir(), repo: t.TempDir()}
	for name, text := range map[string]string{
		filepath.Join(b.home, "bin", "mine"):        homeProgram,
		filepath.Join(b.home, ".mine", "auth.json"): "login",
		filepath.Join(b.repo, ".git", "HEAD"):       "ref: x\n",
	} {
		write(t, name, text)
	}
	rt, err := described.Runtime("mine", []byte(homeDefinition), nil)
	if err != nil {
		t.Fatal(err)
	}
	reg := new(registry.Registry)
	if err := reg.Register(rt); err != nil {
		t.Fatal(err)
	}
	b.Runner = &runner.Runner{
		Registry: reg, Warn: func(string) {},
		Environ: []string{"PATH=" + filepath.Join(b.home, "bin"), "HOME=" + b.home, "TMPDIR=" + t.TempDir()},
	}
	return b
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (b homeBench) run(t *testing.T, req agent.Request) (agent.Result, error) {
	t.Helper()
	req.Runtime, req.Prompt, req.Workdir = "mine", "x", b.repo
	return b.Run(t.Context(), req, agent.Output{})
}

func TestHomeOfADefinition(t *testing.T) {
	t.Parallel()
	b := newHomeBench(t)
	for _, c := range []struct {
		req  agent.Request
		want string
	}{
		{agent.Request{}, "-w --home=HOME\n{}login{home}\n"},
		{agent.Request{Access: agent.AccessRead}, "-r --home=HOME\n{\"edit\":false}login{home}\n"},
		{agent.Request{Resume: "s-1"}, "-w --home=HOME --resume=s-1\n{}login{home}\ns-1.json\n"},
		{agent.Request{Continue: true}, "-w --home=HOME --continue\n{}login{home}\ns-1.json\n"},
	} {
		result, err := b.run(t, c.req)
		if err != nil || strings.TrimSpace(result.Text) != strings.TrimSpace(c.want) {
			t.Errorf("%+v: %v\n%s\nwant\n%s", c.req, err, result.Text, c.want)
		}
	}
	if _, err := b.run(t, agent.Request{Resume: "s-2"}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), `session "s-2" is not kept`) {
		t.Errorf("Run = %v, want a usage error for a session that is not kept", err)
	}
	homes, err := filepath.Glob(filepath.Join(b.repo, ".mine", "bus", "*", "settings.json"))
	if err != nil || len(homes) > 0 {
		t.Errorf("homes are left: %v, %v", homes, err)
	}
	if _, err := os.Lstat(filepath.Join(b.home, ".mine", "sessions")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the home of the user is changed: %v", err)
	}
}

// A CLI with a home has the MCP servers in a file there, for the user alone.
func TestServersAreInTheHomeOfADefinition(t *testing.T) {
	t.Parallel()
	b := newHomeBench(t)
	rt, err := described.Runtime("mine", []byte(strings.Replace(homeDefinition, "--home={home}", "{mcp-file}", 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Registry.Replace(rt); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b.home, "bin", "mine"), "#!/bin/sh\n/bin/ls -l \"$2\"\n/bin/cat \"$2\"\n")
	req := agent.Request{MCPServers: []agent.MCPServer{{Name: "a", URL: "https://example.com", Headers: map[string]string{"K": "short"}}}}
	result, err := b.run(t, req)
	if err != nil || !strings.HasPrefix(result.Text, "-rw-------") || !strings.Contains(result.Text, b.repo) || !strings.HasSuffix(strings.TrimSpace(result.Text), string(agent.MCPConfig(req.MCPServers))) {
		t.Errorf("%v\n%s", err, result.Text)
	}
}

func TestHomeOfTheCallerNeedsFullAccess(t *testing.T) {
	t.Parallel()
	b := newHomeBench(t)
	chosen := t.TempDir()
	for name, text := range map[string]string{"settings.json": "chosen ", "auth.json": "own ", "sub/more": "more"} {
		write(t, filepath.Join(chosen, name), text)
	}
	req := agent.Request{Env: []string{"MINE_HOME=" + chosen}}
	if _, err := b.run(t, req); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "access write cannot be held") {
		t.Errorf("Run = %v, want a usage error", err)
	}
	req.Access = agent.AccessFull
	result, err := b.run(t, req)
	if want := "-f --home=HOME\nchosen own more\n"; err != nil || strings.TrimSpace(result.Text) != strings.TrimSpace(want) {
		t.Errorf("Run = %q, %v, want %q", result.Text, err, want)
	}
	req.Env = []string{"MINE_HOME=" + b.repo}
	if _, err := b.run(t, req); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "inside the repository") {
		t.Errorf("Run = %v, want a usage error", err)
	}
}

// What the repository holds at the place of private homes leads nowhere, and its logins
// are not used.
func TestRepositoryDoesNotControlTheHomeOfADefinition(t *testing.T) {
	t.Parallel()
	b := newHomeBench(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(b.repo, ".mine")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(t, agent.Request{}); err == nil {
		t.Error("a link that leads out of the repository is followed")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}

	b = newHomeBench(t)
	write(t, filepath.Join(b.repo, "planted", "auth.json"), "planted")
	b.Environ = append(b.Environ, "MINE_HOME="+filepath.Join(b.repo, "planted"))
	result, err := b.run(t, agent.Request{})
	if strings.Contains(result.Text, "planted") {
		t.Errorf("a login of the repository is used: %q, %v", result.Text, err)
	}
}

// A home without the CLI's own folder has settings only: the CLI keeps its sessions
// elsewhere, and bus-agent does not look for them.
func TestHomeOfSettingsResumes(t *testing.T) {
	t.Parallel()
	b := newHomeBench(t)
	rt, err := described.New("settings", described.Definition{
		Executables: []string{"mine"}, InstallURL: "https://example.com",
		Args: []described.Argument{{"--resume={resume}"}, {"{continue}"}}, Continue: []described.Argument{{"--continue"}},
		Home: &described.Home{Files: map[string]string{"settings.json": "{}"}},
		Env:  map[string]*string{"MINE_HOME": new("{home}")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		req  agent.Request
		want string
	}{
		{agent.Request{Resume: "unknown"}, "--resume=unknown\n"},
		{agent.Request{Continue: true}, "--continue\n"},
	} {
		test.req.Runtime, test.req.Prompt, test.req.Workdir = "settings", "hello", b.repo
		result, err := b.Run(t.Context(), test.req, agent.Output{})
		if err != nil || !strings.HasPrefix(result.Text, test.want) {
			t.Errorf("%q %v: %q, %v", test.req.Resume, test.req.Continue, result.Text, err)
		}
	}
}
