//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/command"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/verify/targets"
)

// A call is one call of the program.
type call struct {
	args           []string
	code           int
	stdout, stderr string
}

// callsFile names the variable with the file that gets the calls.
const callsFile = "FROZEN_CALLS"

// program does not return if the test binary was started as bus-agent, or to make the calls.
// All of them are made in one process, because a start takes longer than most of them.
func program() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(command.Main("1.2.3", command.WithTargets(targets.All)))
	}
	name := os.Getenv(callsFile)
	if name == "" {
		return
	}
	_ = os.Unsetenv(callsFile)
	var lines []string
	help(nil, &lines)
	for _, text := range completions {
		lines = append(lines, made(strings.Fields(text)).lines(false)...)
	}
	for _, text := range calls {
		lines = append(lines, made(strings.Fields(text)).lines(true)...)
	}
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// made makes the call with args, with an empty standard input.
func made(args []string) call {
	c := call{args: args}
	os.Args = append([]string{"bus-agent"}, args...)
	begun := [2]int64{size(os.Stdout), size(os.Stderr)}
	c.code = command.Main("1.2.3", command.WithTargets(targets.All))
	c.stdout, c.stderr = since(os.Stdout, begun[0]), since(os.Stderr, begun[1])
	return c
}

// size returns the size of a file that is written.
func size(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	return info.Size()
}

func since(f *os.File, begun int64) string {
	text, err := os.ReadFile(f.Name())
	if err != nil {
		panic(err)
	}
	return string(text[begun:])
}

var commandList = regexp.MustCompile(`(?ms)^Commands:\n(.*?)\n\n`)

// help adds the help of a command and of those below it, and what they do with a flag that
// does not exist.
func help(path []string, lines *[]string) {
	c := made(append(slices.Clone(path), "--help"))
	*lines = append(*lines, c.lines(false)...)
	*lines = append(*lines, made(append(slices.Clone(path), "--no-such-flag")).lines(false)...)
	list := commandList.FindStringSubmatch(c.stdout)
	if list == nil {
		return
	}
	for line := range strings.Lines(list[1]) {
		if name := strings.Fields(line)[0]; strings.HasPrefix(line, "  ") && line[2] != ' ' {
			help(append(slices.Clone(path), name), lines)
		}
	}
}

// lines shows c. With shape, JSON is shown as the names and types of its members.
func (c call) lines(shape bool) []string {
	lines := []string{fmt.Sprintf("== bus-agent %s: exit code %d", strings.Join(c.args, " "), c.code)}
	if c.stdout != "" {
		if members := shapeOf(c.stdout); shape && members != nil {
			lines = append(lines, members...)
		} else {
			lines = append(lines, strings.Split(strings.TrimSuffix(c.stdout, "\n"), "\n")...)
		}
	}
	for line := range strings.Lines(c.stderr) {
		lines = append(lines, "stderr: "+strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// shapeOf returns the members of one or more JSON values with their types; nil if text is
// something else.
func shapeOf(text string) []string {
	members := map[string]bool{}
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var v any
		if d.Decode(&v) != nil {
			return nil
		}
		addMembers("json", v, members)
	}
	return sorted(members)
}

func addMembers(path string, v any, members map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		members[path+": object"] = true
		for name, value := range v {
			addMembers(path+"."+name, value, members)
		}
	case []any:
		members[path+": array"] = true
		for _, value := range v {
			addMembers(path+"[]", value, members)
		}
	case nil:
		members[path+": null"] = true
	default:
		members[fmt.Sprintf("%s: %T", path, v)] = true
	}
}

// completions are calls that the completion scripts make, and the scripts.
var completions = []string{
	"__complete", "__complete run --", "__complete run --agent c", "__complete run --agent=codex:", "__complete run --access=",
	"__complete run --model-reasoning-effort m", "__complete run --output-format e", "__complete run --prompt x", "__complete run --workdir s",
	"__complete session s", "__complete session start --", "__complete session start --mode t", "__complete set m", "__complete set model-verbosity l",
	"__complete set order codex c", "__complete unset bus-agent.t", "__complete help set mo", "__complete completion z", "__complete bogus x",
	"__complete runs list --", "__complete runs show -", "__complete verify c", "__complete mcp --", "__complete acp --",
	"completion bash", "completion zsh", "completion fish", "completion tcsh",
}

// calls are made one after the other in a home without settings, with a stub of Codex CLI.
var calls = []string{
	"", "bogus", "version", "version --format json", "--version", "help bogus",
	"detect", "detect --format json", "detect --all --format json",
	"run", "run --agent bogus --text x", "run --agent gemini --text x", "run --agent gemini --text x --format json",
	"run --text x --access none", "run --text x --resume", "run --text x --timeout 0", "run --text x y",
	"run --agent codex --text hello", "run --agent codex --text hello --format json", "run --agent codex --text hello --output-format events",
	"run --agent codex --text hello --output-format ndjson", "run --agent codex --text hello --record --task task-20260101-000000-first", "run --agent codex --text hello --record --task task-20260101-000000-second --preamble --format json --verbose",
	"run --agent codex --text hello --dry-run", "run --agent codex --text hello --dry-run --format json --model m-1 --schema schema.json --mcp servers.json",
	"run --agent codex --text hello --quiet", "run --agent codex --text hello --fallback gemini --format json",
	"runs list --format json", "runs list --format text --runtime none", "runs show latest --format json", "runs output latest", "runs output latest --format json",
	"runs events latest", "runs events --text latest", "runs tail latest", "runs messages latest --format json", "runs show none", "runs prune --dry-run --format json",
	"runs prune", "runs export latest --format json",
	"session list", "session list --format json", "session show none", "session send none x", "session stop none", "session start --agent codex --mode none",
	"session start --agent codex --name tour --format json", "session list --format json", "session show tour --format json", "session interrupt tour --format json",
	"session approve tour 1", "session stop tour --format json", "session stop tour", "session show tour --format json", "session list --all --format json",
	"set", "set bogus x", "set model auto", "set runtime codex", "set timeout 5m", "set timeout never", "config", "config --format json", "unset timeout", "unset bogus",
	"render --text {{A}} --var A=b", "render --text {{A}}", "render --text {{A}} --var A=b --format json",
	"format --agent codex exec.ndjson", "format exec.ndjson", "format --output-format events exec.ndjson", "format none", "format exec.ndjson --format json",
	"instructions show", "instructions show --format json", "instructions clean", "instructions clean --format json",
	"runtime list", "runtime list --format json", "runtime set", "runtime doctor codex --format json", "doctor codex gemini", "doctor codex --format json",
	"verify gemini", "verify gemini --format json", "verify bogus", "verify --list --format json", "mcp", "mcp --list", "acp --agent bogus", "chat", "chat --agent bogus",
	"detect --format yaml", "detect -o result.txt", "detect extra arguments", "-C none detect", "--color sometimes detect",
}

// machine are values of commands that differ from call to call or from machine to machine.
var machine = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{8}-\d{10}-\d+-\d+`), "RUN-ID"},
	{regexp.MustCompile(`MSG-\d{8}-\d{6}-\d+-PID\d+-\d+`), "MESSAGE-ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\d+(\.\d+)?(ms|µs|s)\b`), "DURATION"},
	{regexp.MustCompile(`\b(duration_ms|pid|pgid|process|runner): .+`), "$1: MACHINE"},
}

func withoutMachine(line, root string) string {
	line = neutral(line, root)
	for _, m := range machine {
		line = m.pattern.ReplaceAllString(line, m.with)
	}
	return line
}

// TestCommands compares help, completion, exit codes, messages and JSON members of all
// commands, and then the records of the runs among them.
func TestCommands(t *testing.T) {
	t.Parallel()
	output, err := os.ReadFile("../../backends/codex/testdata/exec-tool-gpt-5.5.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	rt, _ := registry.Default().Lookup("codex")
	w := newWorld(t, rt, play{Output: string(output)})
	write(t, w.path("repo/exec.ndjson"), string(output), 0o644)
	write(t, w.path("repo/schema.json"), string(schema), 0o644)
	write(t, w.path("repo/servers.json"), `{"mcpServers":{"notes":{"command":"mcp-notes"}}}`, 0o644)
	write(t, w.path("repo/AGENTS.md"), "Root rule.\n", 0o644)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Dir, cmd.Env = w.path("repo"), append(w.environ, callsFile+"="+w.path("calls"), "GORACE=atexit_sleep_ms=0")
	streams := map[string]*os.File{}
	for _, name := range []string{"stdout", "stderr"} {
		if streams[name], err = os.Create(w.path(name)); err != nil {
			t.Fatal(err)
		}
		defer streams[name].Close()
	}
	cmd.Stdout, cmd.Stderr = streams["stdout"], streams["stderr"]
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(w.path("stderr"))
		t.Fatalf("%v: %s", err, text)
	}
	text, err := os.ReadFile(w.path("calls"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{}
	var name string
	for line := range strings.Lines(string(text)) {
		line = withoutMachine(strings.TrimSuffix(line, "\n"), w.root)
		if words := strings.Fields(line); strings.HasPrefix(line, "== ") {
			name = strings.Trim(strings.Trim(words[2], ":"), "_")
			if name == "" || strings.HasPrefix(name, "-") {
				name = "bus-agent"
			}
		}
		files[name] = append(files[name], line)
	}
	for _, name := range sorted(files) {
		golden(t, filepath.Join("commands", name+".txt"), files[name])
	}
	golden(t, "records/run.txt", records(t, w))
}

// records returns the modes and contents of the records.
func records(t *testing.T, w *world) (lines []string) {
	t.Helper()
	root := w.path("home", ".local", "state", "bus-agent", "runs")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		lines = append(lines, "== "+rel+" "+info.Mode().String())
		if !info.Mode().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		lines = append(lines, shown(filepath.Base(rel), withoutMachine(string(content), w.root))...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		lines[i] = withoutMachine(line, w.root)
	}
	return lines
}
