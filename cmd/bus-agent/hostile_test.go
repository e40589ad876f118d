package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/registry"
)

// hostileNames are names a file system takes and a terminal or an argument list
// may not.
var hostileNames = map[string]string{
	"line break and escapes": "a\nbus-agent: forged\x1b[2J\x1b]0;title\x07\u009b31m",
	"flag and shell":         "--yolo$(touch x);`y` 'z' \"w\" &|>*\u202e",
	"longest, no UTF-8":      "\xff\x9b" + strings.Repeat("n", 253),
}

// Whatever directories and executables are called, the agent gets their names
// unchanged, and nothing of ours prints what a terminal would act on.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for name, hostile := range hostileNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testHostileName(t, hostile)
		})
	}
}

func testHostileName(t *testing.T, hostile string) {
	s := newSandbox(t, "codex", secretSession+secretAnswer+secretDone)
	// A colon would end an entry of PATH.
	bin := s.path("bin " + strings.TrimSuffix(strings.ReplaceAll(hostile, ":", ""), "nnnn"))
	repo := filepath.Join(s.path("work"), hostile)
	workdir, added := filepath.Join(repo, hostile), filepath.Join(s.path("home"), hostile)
	if err := os.Rename(s.path("bin"), bin); err != nil {
		testneed.Lacking(t, "the file system does not take the name: %v", err)
	}
	for _, dir := range []string{filepath.Join(repo, ".git"), workdir, added, filepath.Join(repo, "broken")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			testneed.Lacking(t, "the file system does not take the name: %v", err)
		}
	}
	replace(t, filepath.Join(repo, ".git/HEAD"), "ref: x", 0o644)
	replace(t, filepath.Join(repo, "AGENTS.md"), "be brief\n", 0o644)
	replace(t, filepath.Join(bin, "codex.play"), "args "+s.path("args")+"\nenv "+s.path("env")+"\n"+secretSession+secretAnswer+secretDone, 0o644)
	// One that is left out, with a warning that names it.
	if err := os.Mkdir(filepath.Join(workdir, "AGENTS.md"), 0o755); err != nil {
		t.Fatal(err)
	}

	in := func(args ...string) {
		t.Helper()
		exit := 0
		if strings.HasPrefix(args[0], "!") {
			args[0], exit = args[0][1:], -1
		}
		cmd := s.command(args...)
		cmd.Path, cmd.Args[0] = filepath.Join(bin, "bus-agent"), filepath.Join(bin, "bus-agent")
		cmd.Env = append(cmd.Env, "PATH="+bin)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if code := inProcess(cmd); (code == 0) != (exit == 0) {
			t.Errorf("%q: exit code %d: %s", args, code, stderr.String())
		}
		for where, text := range map[string]string{"standard output": stdout.String(), "standard error": stderr.String()} {
			if i := strings.IndexFunc(text, unsafeToPrint); i >= 0 {
				t.Errorf("%q prints %q on %s", args, text[max(0, i-40):min(len(text), i+20)], where)
			}
			if !utf8.ValidString(text) {
				t.Errorf("%q prints control characters or invalid UTF-8 on %s: %q", args, where, text)
			}
			if strings.Contains(text, "\nbus-agent: forged") {
				t.Errorf("%q prints a line that is forged on %s:\n%s", args, where, text)
			}
		}
	}
	run := []string{"run", "--agent", "codex", "--text", "x", "--workdir=" + workdir, "--add-dir=" + added}
	in(run...)
	if args, err := os.ReadFile(s.path("args")); err != nil || !strings.Contains("\n"+string(args), "\n--add-dir\n"+added+"\n") && !strings.Contains(string(args), "--add-dir="+added+"\n") || !strings.Contains(string(args), "\n"+workdir+"\n") {
		t.Errorf("the agent was given %q, %v", args, err)
	}
	if env, err := os.ReadFile(s.path("env")); err != nil || !strings.Contains("\n"+string(env), "\nPWD="+workdir+"\n") {
		t.Errorf("its environment is %q, %v", env, err)
	}
	in(append(slices.Clone(run), "-v", "--output-format", "events")...)
	in(append(slices.Clone(run), "--dry-run")...)
	in(append(slices.Clone(run), "--dry-run", "--format", "json")...)
	in("detect", "-v")
	in("-C", workdir, "instructions", "show")
	in("-C", workdir, "instructions", "clean")
	in("!-C", workdir, "doctor") // the agent cannot say its version
	in("!run", "--agent", "codex", "--text", "x", "--workdir="+filepath.Join(workdir, "none"+hostile[:min(9, len(hostile))]))
	in("!run", "--agent", "codex", "--prompt="+filepath.Join(workdir, "none"))
	in("!run", "--agent", hostile, "--text", "x")
	in("!run", "--agent", "codex", "--text", "x", "--model", hostile+"\x01")
	in("!unknown"+hostile[:1], hostile)
	replace(t, filepath.Join(bin, "codex"), "#!"+bin+"/none\n", 0o755)
	in("!run", "--agent", "codex", "--text", "x")
	replace(t, filepath.Join(bin, "codex"), "", 0o644)
	in("!run", "--agent", "codex", "--text", "x")
}

// unsafeToPrint is what a terminal acts on.
func unsafeToPrint(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r)
}

// An executable that would be found through a relative entry of PATH is not
// run, as it can be one of the repository.
func TestRelativeEntryOfPathIsRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{".", "", "/nowhere:./sub"} {
		s := newSandbox(t, "codex", "")
		for _, dir := range []string{"work", "work/sub"} {
			for _, rt := range registry.Default().All() {
				for _, name := range rt.Executables {
					if err := link(s.path(dir), name); err != nil {
						t.Fatal(err)
					}
					replace(t, filepath.Join(s.path(dir), name+".play"), "touch "+s.path("ran")+"\n"+secretSession+secretAnswer+secretDone, 0o644)
				}
			}
		}
		for _, args := range [][]string{{"run", "--text", "x"}, {"run", "--agent", "codex", "--text", "x"}, {"detect", "-v"}} {
			cmd := s.command(args...)
			cmd.Env = append(cmd.Env, "PATH="+path)
			out, err := cmd.CombinedOutput() // with relative entries as seen from its workdir
			if code := exitCode(t, err); code == 0 && args[0] == "run" {
				t.Errorf("PATH=%s: %q succeeds: %s", path, args, out)
			}
			if slices.Contains(args, "--agent") && !strings.Contains(string(out), "absolute") && path != "" {
				t.Errorf("PATH=%s: %q does not say what to do: %s", path, args, out)
			}
		}
		if _, err := os.Lstat(s.path("ran")); err == nil {
			t.Errorf("PATH=%s: the executable was run", path)
		}
	}
}

// A prompt that looks like a flag or a command is a prompt.
func TestPromptsThatLookLikeSomethingElse(t *testing.T) {
	t.Parallel()
	for prompt, calls := range map[string][][]string{
		"--dangerously-skip-permissions": {{"--text=--dangerously-skip-permissions"}, {"--prompt", "prompt"}},
		" \t/clear now":                  {{"--text= \t/clear now"}, {"--template", "prompt"}},
		"-":                              {{"--prompt", "prompt"}},
	} {
		for _, args := range calls {
			s := newSandbox(t, "codex", "")
			replace(t, s.path("bin/codex.play"), "args "+s.path("args")+"\nstdin "+s.path("stdin")+"\n"+secretSession+secretAnswer+secretDone, 0o644)
			replace(t, s.path("work/prompt"), prompt, 0o644)
			cmd := s.command(append([]string{"run", "--agent", "codex"}, args...)...)
			if out, code := output(cmd); code != 0 {
				t.Errorf("%q: exit code %d: %s", args, code, out)
				continue
			}
			stdin, err := os.ReadFile(s.path("stdin"))
			if err != nil || strings.TrimPrefix(string(stdin), "\n") != prompt {
				t.Errorf("%q: the agent reads %q, %v", args, stdin, err)
			}
			given, err := os.ReadFile(s.path("args"))
			if err != nil || len(prompt) > 1 && slices.Contains(strings.Split(string(given), "\n"), prompt) {
				t.Errorf("%q: the agent is given %q, %v", args, given, err)
			}
		}
	}
}

// A file of the repository that is named as a prompt, template or schema is not read
// where it leads out of the repository, and not waited for.
func TestHostileInputFiles(t *testing.T) {
	t.Parallel()
	plants := map[string]func(work, outside string) error{
		"a link to the environment": func(work, _ string) error { return os.Symlink("/proc/self/environ", filepath.Join(work, "dir/input")) },
		"a link to a file outside":  func(work, outside string) error { return os.Symlink(outside, filepath.Join(work, "dir/input")) },
		"a folder that is a link": func(work, outside string) error {
			dir := filepath.Join(work, "dir")
			return errors.Join(os.Remove(dir), os.Symlink(filepath.Dir(outside), dir))
		},
		"a FIFO":           func(work, _ string) error { return syscall.Mkfifo(filepath.Join(work, "dir/input"), 0o600) },
		"an endless file":  func(work, _ string) error { return os.Symlink("/dev/zero", filepath.Join(work, "dir/input")) },
		"a file of 8 TiB":  func(work, _ string) error { return sparse(filepath.Join(work, "dir/input")) },
		"a directory":      func(work, _ string) error { return os.Mkdir(filepath.Join(work, "dir/input"), 0o700) },
		"a link to itself": func(work, _ string) error { return os.Symlink("input", filepath.Join(work, "dir/input")) },
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, "codex", "touch ran\n"+secretSession+secretAnswer+secretDone)
			input := filepath.Join(s.path("work"), "dir", "input")
			if err := errors.Join(os.Mkdir(filepath.Dir(input), 0o700), os.WriteFile(s.path("input"), []byte(`"outside"`), 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := plant(s.path("work"), s.path("input")); err != nil {
				t.Fatal(err)
			}
			run := []string{"run", "--agent", "codex"}
			for _, args := range [][]string{
				append(slices.Clone(run), "--prompt", "dir/input"), append(slices.Clone(run), "--template", input),
				append(slices.Clone(run), "--text", "x", "--schema", "dir/input"), {"render", "--template", "dir/input"},
				{"-C", "/", "run", "--agent", "codex", "--workdir", s.path("work"), "--prompt", input},
				{"session", "start", "--agent", "codex", "--prompt", "dir/input"},
			} {
				cmd := s.command(args...)
				var stdout, stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				if code := inProcess(cmd); code != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "input") {
					t.Errorf("%q: exit code %d: %.200s%.200s", args, code, stdout.String(), stderr.String())
				}
			}
			if _, err := os.Lstat(filepath.Join(s.path("work"), "ran")); err == nil {
				t.Error("the agent was started")
			}
		})
	}
}

// sparse makes a file of 8 TiB, or the most that the file system takes.
func sparse(name string) error {
	err := os.WriteFile(name, nil, 0o600)
	for size := int64(8 << 40); err == nil && size > 1<<30 && os.Truncate(name, size) != nil; {
		size /= 2
	}
	return err
}

// With too few open files a call is refused in one line, before anything is made.
func TestTooFewOpenFiles(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"5", "8", "10", "16", "64"} {
		s := newSandbox(t, "codex", "touch ran\n"+secretSession+secretAnswer+secretDone)
		for _, args := range [][]string{{"run", "--agent", "codex", "--record", "--text", "x"}, {"set", "model", "x"}, {"runs", "list"}} {
			cmd := s.command(args...)
			cmd.Args = append([]string{"sh", "-c", `ulimit -n "$0" && exec "$@"`, limit, cmd.Path}, args...)
			cmd.Path = "/bin/sh"
			out, err := cmd.CombinedOutput()
			if code := exitCode(t, err); code != 2 || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "open files") {
				t.Errorf("%s files, %q: exit code %d: %.500s", limit, args, code, out)
			}
		}
		for _, dir := range []string{"work", "home"} {
			if entries, err := os.ReadDir(s.path(dir)); err != nil || len(entries) > 0 {
				t.Errorf("%s files: %s has %v, %v", limit, dir, entries, err)
			}
		}
	}
}

// Preferences can describe programs to run, so no variable makes a repository
// supply them.
func TestRepositorySuppliesNoPreferences(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", "")
	text := `{"version": 1, "values": {"bus-agent.model": "planted"}}`
	for _, dir := range []string{".", "bus", ".config/bus", "cfg"} {
		if err := os.MkdirAll(filepath.Join(s.path("work"), dir), 0o700); err != nil {
			t.Fatal(err)
		}
		replace(t, filepath.Join(s.path("work"), dir, "preferences.json"), text, 0o600)
	}
	for _, environ := range [][]string{
		{"BUS_PREFERENCES_PATH=preferences.json"}, {"BUS_PREFERENCES_PATH=./cfg/preferences.json"},
		{"BUS_PREFERENCES_PATH=", "BUS_CONFIG_DIR=cfg"}, {"BUS_PREFERENCES_PATH=", "BUS_CONFIG_DIR=."},
		{"BUS_PREFERENCES_PATH=", "XDG_CONFIG_HOME=."}, {"BUS_PREFERENCES_PATH=", "XDG_CONFIG_HOME=", "HOME=."},
		{"BUS_PREFERENCES_PATH=", "HOME="},
	} {
		for _, args := range [][]string{{"config", "show"}, {"run", "--agent", "codex", "--text", "x", "--dry-run"}} {
			cmd := s.command(args...)
			cmd.Env = append(cmd.Env, environ...)
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "planted") {
				t.Errorf("%q: %q: %v: %s", environ, args, err, out)
			}
		}
	}
	cmd := s.command("set", "model", "x")
	cmd.Env = append(cmd.Env, "BUS_PREFERENCES_PATH=preferences.json")
	if out, err := cmd.CombinedOutput(); exitCode(t, err) != 2 || !strings.Contains(string(out), "BUS_PREFERENCES_PATH") {
		t.Errorf("set writes them: %v: %s", err, out)
	}
}
