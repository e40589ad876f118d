package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/worker/backend"
)

func TestRepository(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "root")
	for _, dir := range []string{"root/bus-dev", "root/a.b", "outside"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(root, "file"), "")
	for name, target := range map[string]string{
		"root/alias": "bus-dev", "root/out": "../outside", "root/absolute": filepath.Join(base, "outside"),
		"root/self": ".", "root/loop": "loop", "linked-root": "root",
	} {
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	for recipient, want := range map[string]string{
		"bus-dev": root + "/bus-dev", "@bus-dev": root + "/bus-dev", "a.b": root + "/a.b", "alias": root + "/bus-dev",
		"busdk": root,

		"": "", "@": "", ".": "", "..": "", "../outside": "", "bus-dev/..": "", "/etc": "", ".git": "", "-x": "", "a..b": "",
		"bus-dev\x00": "", "bus dev": "", "out": "", "absolute": "", "self": "", "loop": "", "file": "", "missing": "",
		strings.Repeat("a", 129): "",
	} {
		for _, at := range []string{root, filepath.Join(base, "linked-root")} {
			s := Settings{WorkspaceRoot: at, WorkspaceRecipient: "busdk"}
			got, err := s.Repository(recipient)
			if got != want || (err == nil) != (want != "") || err != nil && (!errors.Is(err, agent.ErrUsage) || strings.ContainsAny(err.Error(), "\n\x00")) {
				t.Errorf("%q: got %q, %v; want %q", recipient, got, err, want)
			}
		}
	}
	s := Settings{WorkspaceRoot: filepath.Join(base, "linked-root"), WorkspaceHostRoot: "/srv/host"}
	if folder, err := s.Repository("bus-dev"); err != nil || s.HostPath(folder) != "/srv/host/bus-dev" {
		t.Errorf("the host has %s as %s, %v", folder, s.HostPath(folder), err)
	}
	for _, at := range []string{filepath.Join(base, "nowhere"), filepath.Join(root, "file")} {
		s := Settings{WorkspaceRoot: at, WorkspaceRecipient: "busdk"}
		for _, recipient := range []string{"busdk", "bus-dev"} {
			if got, err := s.Repository(recipient); !errors.Is(err, agent.ErrUsage) {
				t.Errorf("%s in %s: got %q, %v", recipient, at, got, err)
			}
		}
	}
}

func TestStateDir(t *testing.T) {
	t.Parallel()
	s := Settings{CodexStateRoot: "/state"}
	seen := map[string]string{}
	for _, ref := range []string{"a#1.1", "a#1-1", "a/1.1", "../../x", strings.Repeat("a", 300), strings.Repeat("a", 299) + "b", ""} {
		dir := s.StateDir(ref)
		if filepath.Dir(dir) != "/state" || len(filepath.Base(dir)) > 100 || seen[dir] != "" {
			t.Errorf("%q has the folder %q, as %q", ref, dir, seen[dir])
		}
		seen[dir] = ref + " "
	}
	if got := (&Settings{}).StateDir("a"); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestHostPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/workspace": "/srv/host", "/workspace/a/b": "/srv/host/a/b", "/workspaces/a": "/workspaces/a", "/elsewhere": "/elsewhere",
	} {
		s := Settings{WorkspaceRoot: "/workspace", WorkspaceHostRoot: "/srv/host"}
		if got := s.HostPath(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
		s.WorkspaceHostRoot = ""
		if got := s.HostPath(path); got != path {
			t.Errorf("%s: got %s", path, got)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	s := Settings{PreCommand: []string{"a"}, Command: []string{"b", "{prompt}"}, PostCommand: []string{"c", "{branch}"}}
	got, err := s.Commands(Values{"prompt": "p q", "branch": "x"})
	want := backend.Commands{Before: []string{"a"}, Main: []string{"b", "p q"}, After: []string{"c", "x"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got, err := s.Commands(Values{"branch": "\x00"}); !errors.Is(err, agent.ErrUsage) || got.Main != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := (&Settings{Command: []string{"b"}}).Commands(nil); got.Before != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	values := Values{"prompt": "a {body} $(x) ; \"q\"\n{secret}", "body": "b", "work_ref": "r"}
	got, err := ExpandCommand([]string{"codex", "{prompt}", "x={body}{work_ref}{branch}", `{"json":{"a":1}}`, "{}", "${HOME}", "{{body}}"}, values)
	want := []string{"codex", values["prompt"], "x=br", `{"json":{"a":1}}`, "{}", "${HOME}", "{b}"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, word := range []string{"{summary}", "{password}", "${home}"} {
		if _, err := ExpandCommand([]string{word}, values); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "unknown; use {prompt}") {
			t.Errorf("%s: %v", word, err)
		}
	}
	if _, err := ExpandCommand([]string{"{body}"}, Values{"body": "a\x00b"}); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a NUL: %v", err)
	}
	for _, name := range commandPlaceholders {
		if got, err := ExpandCommand([]string{"{" + name + "}"}, Values{name: "v"}); err != nil || got[0] != "v" {
			t.Errorf("{%s}: %q, %v", name, got, err)
		}
	}

	text, err := ExpandMessage("task: {summary}\n\n{work_ref}", Values{"summary": "a\x00{work_ref}", "work_ref": "r"})
	if text != "task: a{work_ref}\n\nr" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	text, err = ExpandMessage("{summary}", Values{"summary": strings.Repeat("ä", MaxMessage)})
	if len(text) != MaxMessage || err != nil {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := ExpandMessage("{password}", nil); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
}

func TestOpenAIKey(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	first, second := filepath.Join(base, "first"), filepath.Join(base, "second")
	for name, text := range map[string]string{
		"first/key": "sk-first\r\n", "second/key": "sk-second", "second/only": "sk-only\n", "outside": "sk-outside",
		"first/empty": "\n", "first/lines": "sk-a\nsk-b", "first/long": strings.Repeat("s", maxSecret+1),
	} {
		file := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, text)
	}
	if err := os.Symlink("../outside", filepath.Join(first, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("key", filepath.Join(first, "inside")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(first, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(base, "missing"), first, second}
	for _, c := range []struct {
		ref, environ, want string
	}{
		{"key", "", "sk-first"}, {"only", "", "sk-only"}, {"inside", "", "sk-first"},
		{"key", "OPENAI_API_KEY=sk-set", "sk-set"}, {"key", "OPENAI_API_KEY= ", "sk-first"}, {"../x", "OPENAI_API_KEY=sk-set", "sk-set"},

		{"nowhere", "", ""}, {"", "", ""}, {".", "", ""}, {"..", "", ""}, {"../outside", "", ""}, {"a/b", "", ""}, {"/etc/passwd", "", ""},
		{"link", "", ""}, {"fifo", "", ""}, {"empty", "", ""}, {"lines", "", ""}, {"long", "", ""},
	} {
		got, err := Secrets{Environ: []string{c.environ}, Dirs: dirs}.OpenAIKey(c.ref)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: got %q, %v", c.ref, got, err)
		}
		if text := fmt.Sprint(err); err != nil && (!errors.Is(err, agent.ErrUsage) || strings.Contains(text, "sk-") || strings.Contains(text, "\n")) {
			t.Errorf("%q: %q", c.ref, text)
		}
	}
	for dir, want := range map[string][]string{"": {"/run/secrets"}, "/s": {"/s", "/run/secrets"}} {
		if diff := cmp.Diff(want, (&Settings{DeploymentSecrets: dir}).SecretDirs()); diff != "" {
			t.Error(diff)
		}
	}
}
