package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/busdk/bus-agent/internal/testneed"
)

// action is what action.yml describes.
type action struct {
	Inputs  map[string]struct{ Default string }
	Outputs map[string]struct{ Value string }
	Runs    struct{ Steps []actionStep }
}

type actionStep struct {
	ID, If, Shell, Run, Uses string
	Env, With                map[string]string
}

func readAction(t *testing.T) (a action) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// job runs the steps of the action as GitHub does.
type job struct {
	*sandbox
	inputs  map[string]string
	outputs map[string]map[string]string // by step
	failed  map[string]int               // exit codes of steps
	log     string
	summary string
	upload  map[string]string       // what upload-artifact gets
	during  func(shell *os.Process) // what happens while a step runs
}

// actionPlay is a fake Codex that keeps its prompt, arguments and variables, and answers.
const actionPlay = "stdin prompt\nargs args\nenv environment\ncat answer.ndjson\n"

// newJob has a fake Codex that ends with answer, or fails without one.
func newJob(t *testing.T, answer string) *job {
	t.Helper()
	testneed.Program(t, "bash")
	j := &job{sandbox: newSandbox(t, agentName, actionPlay), outputs: map[string]map[string]string{}, failed: map[string]int{}}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	lines := fmt.Sprintf(`{"type":"item.completed","item":{"id":"1","type":"agent_message","text":%s}}`+"\n"+
		`{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":2}}`+"\n", text)
	play := actionPlay
	if answer == "" {
		lines, play = "", actionPlay+"exit 3\n"
	}
	j.write("bin/answer.ndjson", lines)
	j.write("bin/codex.play", play)
	// The program that the steps build is this one.
	j.write("bin/go", "#!/bin/sh\nprintf '%s\\n' \"$@\" >>"+quoted(j.path("go-args"))+`
while [ $# -gt 1 ]; do
	[ "$1" != -o ] || to="$2"
	shift
done
ln -s `+quoted(j.path("bin/bus-agent"))+` "${GOBIN:+$GOBIN/bus-agent}${to:-}"
`)
	if err := os.Chmod(j.path("bin/go"), 0o755); err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *job) write(name, text string) {
	j.t.Helper()
	// A process that another test forks meanwhile would have the file open for writing
	// until it calls exec, so that it could not be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(j.path(name), []byte(text), 0o644); err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) read(name string) string {
	j.t.Helper()
	text, err := os.ReadFile(j.path(name))
	if err != nil {
		j.t.Fatal(err)
	}
	return string(text)
}

var (
	expression = regexp.MustCompile(`\$\{\{ (.*?) \}\}`)
	condition  = regexp.MustCompile(`^always\(\) && (steps\.\S+) != ''$`)
)

// value returns the value of an expression, of which the action has two kinds.
func (j *job) value(of string) string {
	j.t.Helper()
	parts := strings.Split(of, ".")
	switch {
	case len(parts) == 2 && parts[0] == "inputs":
		return j.inputs[parts[1]]
	case len(parts) == 4 && parts[0] == "steps" && parts[2] == "outputs":
		return j.outputs[parts[1]][parts[3]]
	}
	j.t.Fatalf("the action has an unknown expression %q", of)
	return ""
}

func (j *job) expand(text string) string {
	return expression.ReplaceAllStringFunc(text, func(m string) string { return j.value(expression.FindStringSubmatch(m)[1]) })
}

// run runs all steps and returns the outputs of the action.
func (j *job) run(inputs map[string]string) map[string]string {
	j.t.Helper()
	a := readAction(j.t)
	j.inputs = map[string]string{}
	for name, input := range a.Inputs {
		j.inputs[name] = input.Default
	}
	maps.Copy(j.inputs, inputs)
	for _, step := range a.Runs.Steps {
		if m := condition.FindStringSubmatch(step.If); m != nil {
			if j.value(m[1]) == "" {
				continue
			}
		} else if step.If != "" {
			j.t.Fatalf("step %s has an unknown condition %q", step.ID, step.If)
		} else if len(j.failed) > 0 {
			continue
		}
		if step.Uses != "" {
			j.upload = map[string]string{}
			for name, value := range step.With {
				j.upload[name] = j.expand(value)
			}
			continue
		}
		j.step(step)
	}
	outputs := map[string]string{}
	for name, output := range a.Outputs {
		outputs[name] = j.expand(output.Value)
	}
	return outputs
}

func (j *job) step(step actionStep) {
	j.t.Helper()
	if step.Shell != "bash" {
		j.t.Fatalf("step %s has the shell %q", step.ID, step.Shell)
	}
	if err := os.MkdirAll(j.path("temp"), 0o755); err != nil {
		j.t.Fatal(err)
	}
	j.write("step.sh", step.Run)
	j.write("output", "")
	j.write("summary", "")
	c := exec.CommandContext(j.t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", j.path("step.sh"))
	c.Dir = j.path("work")
	c.Env = append(j.command().Env, "GITHUB_ENV="+j.path("env-of-job"), "GITHUB_PATH="+j.path("path-of-job"), "GITHUB_STATE="+j.path("state"),
		"GITHUB_OUTPUT="+j.path("output"), "GITHUB_STEP_SUMMARY="+j.path("summary"), "RUNNER_TEMP="+j.path("temp"), "GITHUB_ACTION_PATH=/action",
		"ACTIONS_ID_TOKEN_REQUEST_TOKEN=for-openid", "PATH="+j.path("bin")+":/usr/bin:/bin")
	for name, value := range step.Env {
		c.Env = append(c.Env, name+"="+j.expand(value))
	}
	var log bytes.Buffer
	c.Stdout, c.Stderr = &log, &log
	err := c.Start()
	if err == nil {
		if j.during != nil {
			j.during(c.Process)
		}
		err = c.Wait()
	}
	j.log += log.String()
	if code := exitCode(j.t, err); code != 0 {
		j.failed[step.ID] = code
	}
	outputs, err := parseOutputs(j.read("output"))
	if err != nil {
		j.t.Fatalf("step %s: %v", step.ID, err)
	}
	j.outputs[step.ID] = outputs
	j.summary += j.read("summary")
}

// parseOutputs reads the file of GITHUB_OUTPUT as the runner does.
func parseOutputs(text string) (map[string]string, error) {
	outputs := map[string]string{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines) && text != ""; i++ {
		equal, heredoc := strings.Index(lines[i], "="), strings.Index(lines[i], "<<")
		switch {
		case equal >= 0 && (heredoc < 0 || equal < heredoc):
			outputs[lines[i][:equal]] = lines[i][equal+1:]
		case heredoc >= 0:
			end := slices.Index(lines[i+1:], lines[i][heredoc+2:])
			if end < 0 {
				return nil, fmt.Errorf("%q has no end", lines[i])
			}
			outputs[lines[i][:heredoc]] = strings.Join(lines[i+1:i+1+end], "\n")
			i += end + 1
		default:
			return nil, fmt.Errorf("%q is not an output", lines[i])
		}
	}
	return outputs, nil
}

// hostileTexts are texts that scripts and files of outputs can mistake for their syntax,
// some only where a text begins with it.
var hostileTexts = map[string]string{
	"options": "--access=full",
	"at sign": "@prompt.md",
	"others": `it's "quoted" \ and 'single' ` + "`touch $PWD/harmed`" +
		"$(touch harmed); touch harmed & | && > harmed\n$(touch harmed)\n" +
		"${{ github.token }} ${{ inputs.version }} {{ .Var }} ${HOME} $INPUT_MODEL" +
		"\n\n  two\ttabs\n::set-output name=answer::harmed\n::error::harmed\n%0A%25\n" +
		"answer<<EOF\nEOF\nrun-id=harmed\nanswer=harmed\nreport<<x\n" +
		"%s %d %n \\n \\x41 \\" + "ääkköset \u202e 漢字 🙂\n" +
		"![x](https://example.invalid/x.png) <img src=x> [x](https://example.invalid)\n```\n# heading\r# another",
}

// The prompt reaches the agent, and the answer the outputs, as they are.
func TestActionPassesTextUnchanged(t *testing.T) {
	t.Parallel()
	for name, text := range hostileTexts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, text)
			got := j.run(map[string]string{"prompt": text, "runtime": "codex"})
			if len(j.failed) > 0 {
				t.Fatalf("failed %v: %s", j.failed, j.log)
			}
			if prompt := strings.TrimRight(j.read("work/prompt"), "\n"); prompt != text {
				t.Errorf("the agent got %q, want %q", prompt, text)
			}
			// bus-agent prints no control characters of agents, so that no line of the
			// summary ends without "\n".
			answer := strings.NewReplacer("\r", "", "\u202e", "").Replace(text)
			if got["answer"] != answer {
				t.Errorf("the answer is %q, want %q", got["answer"], answer)
			}
			if _, err := os.Stat(j.path("work/harmed")); err == nil {
				t.Error("a text ran as code")
			}
			for line := range strings.Lines(j.summary) {
				if text := strings.TrimSpace(line); text != "" && text != "### bus-agent" && text != "### Answer" && !strings.HasPrefix(line, "    ") {
					t.Errorf("the summary has the line %q, which is not indented", line)
				}
			}
			if !strings.HasSuffix(j.summary, "\n### Answer\n\n    "+strings.ReplaceAll(answer, "\n", "\n    ")+"\n\n") || !strings.Contains(j.summary, "completed") {
				t.Errorf("the summary is %q", j.summary)
			}
		})
	}
}

// What the agent prints is between the commands that stop and resume those of the runner,
// and the agent cannot find the files of the job in its variables.
func TestActionKeepsTheAgentFromTheJob(t *testing.T) {
	t.Parallel()
	j := newJob(t, "::error::from the agent")
	j.run(map[string]string{"prompt": "work", "runtime": "codex"})
	if stopped, heard := heardBy(j.log); !strings.Contains(stopped, "::error::from the agent") || heard != "" {
		t.Errorf("the log is %q", j.log)
	}
	environment := j.read("work/environment")
	for _, kept := range []string{"GITHUB_ENV=", "GITHUB_PATH=", "GITHUB_OUTPUT=", "GITHUB_STATE=", "GITHUB_STEP_SUMMARY=", "for-openid"} {
		if strings.Contains(environment, kept) {
			t.Errorf("the agent has %s in its environment", kept)
		}
	}
	if !strings.Contains(environment, "HOME=") {
		t.Errorf("the environment is %q", environment)
	}
}

// heardBy returns what a log has while the commands of the runner are stopped, and else.
func heardBy(log string) (stopped, heard string) {
	resume := ""
	for line := range strings.Lines(log) {
		text := strings.TrimSuffix(line, "\n")
		token, stops := strings.CutPrefix(text, "::stop-commands::")
		switch {
		case stops && resume == "":
			resume = "::" + token + "::"
		case resume == "":
			heard += line
		case text == resume:
			resume = ""
		default:
			stopped += line
		}
	}
	return stopped, heard
}

// An agent that records runs itself, and makes files in its record, changes neither which
// record is kept nor what the runner hears.
func TestActionKeepsItsOwnRecord(t *testing.T) {
	t.Parallel()
	j := newJob(t, "the answer")
	// The version of an agent is asked in another folder.
	j.write("bin/codex.play", "sh if [ \"$PWD\" = "+quoted(j.path("work"))+" ]; then [ -e child ] || { : >child; bus-agent run --record --parent-run \"$JRUN_PARENT_ID\" --agent codex --text child >child.out 2>&1; }; "+
		`ln -s /etc/hosts "$JRUN_RUN_FOLDER/##[error]forged"; fi; : >"over-$JRUN_ID"`+"\nwait over-$JRUN_ID\n"+actionPlay)
	got := j.run(map[string]string{"prompt": "work", "runtime": "codex"})
	if len(j.failed) > 0 || got["run-id"] == "" {
		t.Fatalf("failed %v, outputs %q: %s", j.failed, got, j.log)
	}
	if said := j.read("work/child.out"); !strings.Contains(said, "recorded") {
		t.Fatalf("the run of the agent is not recorded: %s", said)
	}
	names := archived(t, strings.Split(j.upload["path"], "\n")[1])
	if !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, got["run-id"]+"/run-info.yaml") }) {
		t.Errorf("the archive has %q", names)
	}
	records := strings.Split(j.exits(0, "runs", "list", "--runs-root", filepath.Join(filepath.Dir(got["report"]), "records")), "\n")
	if len(records) < 2 || strings.HasPrefix(records[0], got["run-id"]) || !strings.HasPrefix(records[1], got["run-id"]) {
		t.Errorf("run %s of %q", got["run-id"], records)
	}
	if stopped, heard := heardBy(j.log); !strings.Contains(stopped, "##[error]forged") || strings.Contains(heard, "forged") {
		t.Errorf("the log is %q", j.log)
	}
}

func TestActionKeepsRecordAndReport(t *testing.T) {
	t.Parallel()
	j := newJob(t, "the answer")
	j.write("work/task.md", "from a file")
	got := j.run(map[string]string{"prompt-file": "task.md", "runtime": "codex", "model": "gpt-x", "access": "write", "timeout": "2m", "version": "v1.2.3"})
	if len(j.failed) > 0 || got["answer"] != "the answer" || got["run-id"] == "" {
		t.Fatalf("failed %v, outputs %q: %s", j.failed, got, j.log)
	}
	if prompt := strings.TrimSpace(j.read("work/prompt")); prompt != "from a file" {
		t.Errorf("the prompt is %q", prompt)
	}
	if args := j.read("work/args"); !strings.Contains(args, "gpt-x") || !strings.Contains(args, "workspace-write") {
		t.Errorf("the arguments are %q", args)
	}
	if args := j.read("go-args"); !strings.HasPrefix(args, "install\n") || !strings.HasSuffix(args, "\ngithub.com/busdk/bus-agent/cmd/bus-agent@v1.2.3\n") {
		t.Errorf("go got %q", args)
	}
	page, err := os.ReadFile(got["report"])
	if err != nil || !strings.Contains(string(page), "the answer") || !strings.Contains(string(page), got["run-id"]) {
		t.Errorf("the report has %d bytes, %v", len(page), err)
	}
	files := strings.Split(strings.TrimSpace(j.upload["path"]), "\n")
	if j.upload["name"] != "bus-agent-"+got["run-id"] || len(files) != 2 || files[0] != got["report"] {
		t.Fatalf("the artifact is %q", j.upload)
	}
	if names := archived(t, files[1]); !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, got["run-id"]+"/run-info.yaml") }) {
		t.Errorf("the archive has %q", names)
	}
}

// archived returns the names in a tar file.
func archived(t *testing.T, name string) (names []string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

// A failure fails the step, and its record is kept if there was a run.
func TestActionFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		inputs   map[string]string
		step     string
		code     int
		recorded bool
		log      string
	}{
		"agent":            {map[string]string{"prompt": "x", "runtime": "codex"}, "run", 1, true, "exit code 3"},
		"no prompt":        {nil, "run", 2, false, "::error::bus-agent: there is no prompt; set prompt or prompt-file\n"},
		"two prompts":      {map[string]string{"prompt": "x", "prompt-file": "y"}, "run", 2, false, "::error::bus-agent: set prompt or prompt-file, not both\n"},
		"no file":          {map[string]string{"prompt-file": "missing.md"}, "run", 2, false, "missing.md"},
		"an empty prompt":  {map[string]string{"prompt": "\n"}, "run", 2, false, "empty"},
		"standard input":   {map[string]string{"prompt-file": "-"}, "run", 2, false, "empty"},
		"access":           {map[string]string{"prompt": "x", "access": "all"}, "run", 2, false, "--access"},
		"runtime":          {map[string]string{"prompt": "x", "runtime": "--access=full"}, "run", 2, false, "--access=full"},
		"timeout":          {map[string]string{"prompt": "x", "timeout": "5 $(touch harmed)"}, "run", 2, false, "--timeout"},
		"an absent agent":  {map[string]string{"prompt": "x", "runtime": "gemini"}, "run", 1, true, "not installed"},
		"commands in file": {map[string]string{"prompt-file": "$(touch harmed)"}, "run", 2, false, "touch harmed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "")
			got := j.run(test.inputs)
			if diff := cmp.Diff(map[string]int{test.step: test.code}, j.failed); diff != "" {
				t.Errorf("exit codes: %s", diff)
			}
			if recorded := got["run-id"] != "" && got["report"] != "" && j.upload != nil; recorded != test.recorded {
				t.Errorf("recorded: %t; outputs %q", recorded, got)
			}
			if !strings.Contains(j.log, test.log) {
				t.Errorf("the log lacks %q: %s", test.log, j.log)
			}
			if _, err := os.Stat(j.path("work/harmed")); err == nil {
				t.Error("an input ran as code")
			}
		})
	}
}

// A job that is canceled ends the agent, and keeps its record.
func TestActionIsCanceled(t *testing.T) {
	t.Parallel()
	j := newJob(t, "")
	j.write("bin/codex.play", "sh if [ \"$PWD\" = "+quoted(j.path("work"))+" ]; then : >up; fi\nhang\n")
	j.during = func(shell *os.Process) {
		if _, built := j.outputs["program"]; built && j.outputs["run"] == nil {
			j.await("work/up")
			if err := shell.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	got := j.run(map[string]string{"prompt": "x", "runtime": "codex"})
	if j.failed["run"] == 0 || got["run-id"] == "" || got["report"] == "" || j.upload == nil {
		t.Errorf("failed %v, outputs %q: %s", j.failed, got, j.log)
	}
}

// A record with many names of files is kept.
func TestActionKeepsARecordWithManyFiles(t *testing.T) {
	t.Parallel()
	j := newJob(t, "the answer")
	j.write("bin/codex.play", `sh if [ -n "$JRUN_RUN_FOLDER" ]; then i=0 long=$(printf '%0236d' 0); while [ $i -lt 900 ]; do i=$((i+1)); : >"$JRUN_RUN_FOLDER/$long$i"; done; fi; : >made`+"\nwait made\n"+actionPlay)
	if got := j.run(map[string]string{"prompt": "x", "runtime": "codex"}); len(j.failed) > 0 || got["report"] == "" || j.upload == nil {
		t.Errorf("failed %v, outputs %q", j.failed, got)
	}
}

// A large answer is cut in the output and the summary, which GitHub limits.
func TestActionCutsALargeAnswer(t *testing.T) {
	t.Parallel()
	j := newJob(t, "abc"+strings.Repeat("012345ä\n", 50_000)) // the limit is in a character
	got := j.run(map[string]string{"prompt": "x", "runtime": "codex"})
	if len(j.failed) > 0 || len(got["answer"]) > 100_000 || len(got["answer"]) < 99_980 || !utf8.ValidString(got["answer"]) || len(j.summary) > 1<<20 {
		t.Errorf("failed %v; the answer has %d bytes, the summary %d", j.failed, len(got["answer"]), len(j.summary))
	}
	if !strings.Contains(j.log, "\n::warning::bus-agent: the output has the beginning of the answer") {
		t.Errorf("the log is %q", j.log[max(0, len(j.log)-500):])
	}
}

// Inputs are not part of a script, and the page describes the action.
func TestActionIsDocumented(t *testing.T) {
	t.Parallel()
	a := readAction(t)
	for _, step := range a.Runs.Steps {
		if strings.Contains(step.Run, "${{") {
			t.Errorf("step %s has an expression in its script", step.ID)
		}
		if step.Uses != "" && !regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`).MatchString(step.Uses) {
			t.Errorf("%s is not pinned by a commit", step.Uses)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "github-actions.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllSubmatch(page, -1) {
		listed = append(listed, string(m[1]))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Sorted(keysOf(a)), listed); diff != "" {
		t.Errorf("the page lists other inputs and outputs: %s", diff)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	var workflow struct {
		Jobs map[string]struct{ Steps []actionStep }
	}
	if m == nil || yaml.Unmarshal(m[1], &workflow) != nil {
		t.Fatal("the page shows no workflow")
	}
	used := 0
	for _, step := range workflow.Jobs["review"].Steps {
		if !strings.HasPrefix(step.Uses, "busdk/bus-agent@") {
			continue
		}
		used++
		for name := range step.With {
			if _, ok := a.Inputs[name]; !ok {
				t.Errorf("the page uses the input %s, which does not exist", name)
			}
		}
	}
	if used != 1 {
		t.Errorf("the workflow on the page uses the action %d times", used)
	}
}

func keysOf(a action) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range a.Inputs {
			if !yield(name) {
				return
			}
		}
		for name := range a.Outputs {
			if !yield(name) {
				return
			}
		}
	}
}
