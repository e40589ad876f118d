package runs_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

// The test binary is also the agent: PATH has a link to it, and FAKE_AGENT holds its
// steps, one per line.
func TestMain(m *testing.M) {
	switch script, ok := os.LookupEnv("FAKE_AGENT"); {
	case ok:
		os.Exit(fakeAgent(script))
	case os.Getenv("FAKE_RUNNER") != "":
		name, arg, _ := strings.Cut(os.Getenv("FAKE_RUNNER"), ":")
		os.Exit(recordingPrograms[name](arg))
	}
	os.Exit(m.Run())
}

func fakeAgent(script string) int {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("Fake CLI v1.2.3")
		return 0
	}
	prompt, _ := io.ReadAll(os.Stdin)
	for step := range strings.SplitSeq(script, "\n") {
		verb, arg, _ := strings.Cut(step, " ")
		switch verb {
		case "say":
			fmt.Println(os.ExpandEnv(arg))
		case "stderr":
			fmt.Fprintln(os.Stderr, os.ExpandEnv(arg))
		case "prompt":
			fmt.Printf("text:%q\n", prompt)
		case "once": // says one line the first time, and another one then
			first, then, _ := strings.Cut(arg, "|")
			if os.Mkdir("said", 0o700) == nil {
				then = first
			}
			fmt.Println(then)
		case "environ":
			for _, entry := range os.Environ() {
				fmt.Println("env:" + entry)
			}
		case "output":
			if err := os.WriteFile(filepath.Join(os.Getenv("JRUN_RUN_FOLDER"), "output.md"), []byte(arg), 0o600); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		case "outputsecret":
			if err := os.WriteFile(filepath.Join(os.Getenv("JRUN_RUN_FOLDER"), "output.md"), []byte("the key is "+os.Getenv("FAKE_API_KEY")+"!"), 0o600); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		case "swap": // replaces a file of the record
			name, what, _ := strings.Cut(arg, " ")
			path := filepath.Join(os.Getenv("JRUN_RUN_FOLDER"), name)
			for { // the recorder may be writing it
				_ = os.Remove(path)
				var err error
				switch what {
				case "fifo":
					err = unix.Mkfifo(path, 0o600)
				case "sparse":
					err = errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 8<<40))
				default:
					err = os.Symlink(what, path)
				}
				if err == nil {
					break
				}
				if !errors.Is(err, os.ErrExist) {
					fmt.Println(err)
					break
				}
			}
		case "replace": // replaces a parent folder of the record by a link
			name, what, _ := strings.Cut(arg, " ")
			path := filepath.Join(os.Getenv("JRUN_RUN_FOLDER"), name)
			if err := errors.Join(os.Rename(path, path+"-moved"), os.Symlink(what, path)); err != nil {
				fmt.Println(err)
			}
		case "remove": // replaces a parent folder of the record by another one
			path := filepath.Join(os.Getenv("JRUN_RUN_FOLDER"), arg)
			for os.RemoveAll(path) != nil { // the recorder may be writing there
				runtime.Gosched()
			}
			if err := os.MkdirAll(os.Getenv("JRUN_RUN_FOLDER"), 0o700); err != nil {
				fmt.Println(err)
			}
		case "many":
			var n int
			fmt.Sscan(arg, &n)
			for i := range n {
				fmt.Printf("text:%d\n", i)
			}
		case "stay":
			for {
				time.Sleep(time.Hour)
			}
		case "die":
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			time.Sleep(time.Hour)
		case "exit":
			var code int
			fmt.Sscan(arg, &code)
			return code
		}
	}
	return 0
}

// fakeDecoder reads lines of the form kind:text.
type fakeDecoder struct{}

func (fakeDecoder) Decode(line []byte, events []agent.Event) []agent.Event {
	kind, text, _ := strings.Cut(string(line), ":")
	switch kind {
	case "session":
		return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: text, Model: "m-1"})
	case "text":
		return append(events, agent.Event{Kind: agent.KindText, Text: text})
	case "delta":
		return append(events, agent.Event{Kind: agent.KindText, MessageID: "m", Delta: true, Text: text})
	case "tool":
		return append(events, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "t1", Name: text}})
	case "again":
		return append(events, agent.Event{Kind: agent.KindToolCall, Delta: true, Tool: &agent.Tool{ID: "t1", Name: text}})
	case "change":
		return append(events, agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "f", Action: "add", Diff: "@@ -0,0 +1 @@\n+" + text + "\n"}}})
	case "usage":
		cost := 0.25
		return append(events, agent.Event{Kind: agent.KindUsage, Usage: &agent.Usage{Input: 3, Output: 4, CostUSD: &cost}})
	case "ok":
		return append(events, agent.Event{Kind: agent.KindResult})
	case "quota":
		return append(events, agent.Event{Kind: agent.KindResult, Failed: true, Failure: agent.FailureQuota, Text: text})
	}
	return append(events, agent.Event{Kind: agent.KindRaw, Text: string(line)})
}

func fakeRuntime(id string, tokens ...string) registry.Runtime {
	return registry.Runtime{
		ID: id, Name: "Fake " + id, Executables: []string{id}, InstallURL: "https://example.com/" + id,
		Run: registry.Use{
			Options: registry.Options{Model: true, Access: agent.Accesses()},
			Command: func(inv registry.Invocation) (agent.Command, error) {
				return agent.Command{Args: append([]string{"it's", "-p"}, inv.Args...), Stdin: inv.Prompt}, nil
			},
		},
		TokenEnv:      tokens,
		Decoder:       func() formatters.Decoder { return fakeDecoder{} },
		ReportsResult: true,
	}
}

// secret is in the environment of every agent here.
const secret = `sk-"very\secret`

// bench is a runner over fake runtimes that records into a folder.
type bench struct {
	runner.Runner
	root     string
	dir      string
	warnings []string
}

func newBench(t *testing.T, store *runs.Records) *bench {
	t.Helper()
	b := &bench{dir: filepath.Join(t.TempDir(), "My Project")}
	path := t.TempDir()
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.Registry = new(registry.Registry)
	for _, rt := range []registry.Runtime{fakeRuntime("fake", "FAKE_API_KEY", "XAI_API_KEY"), fakeRuntime("other"), {
		ID: "nested", Name: "Nested", Executables: []string{"nested"}, InstallURL: "https://example.com/nested",
		TokenEnv: []string{"OPENAI_API_KEY"}, ProviderEnv: []string{"OPENAI_ORG_ID", "XAI_API_KEY"}, NestedEnv: []string{"NESTED"},
		Run: fakeRuntime("").Run, Decoder: fakeRuntime("").Decoder,
	}} {
		if err := b.Registry.Register(rt); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(self, filepath.Join(path, rt.ID)); err != nil {
			t.Fatal(err)
		}
	}
	b.Environ = []string{
		"PATH=" + path, "GORACE=atexit_sleep_ms=0", "HOME=" + t.TempDir(), "FAKE_API_KEY=" + secret,
		"OPENAI_API_KEY=sk-openai", "OPENAI_ORG_ID=org", "XAI_API_KEY=sk-xai-secret", "NESTED=1",
	}
	b.Warn = func(line string) { b.warnings = append(b.warnings, line) }
	if store.Root == "" {
		store.Root = filepath.Join(t.TempDir(), "runs")
	}
	b.root = store.Root
	b.Recorder = store
	return b
}

func (b *bench) request(script ...string) agent.Request {
	return agent.Request{
		Runtime: "fake", Prompt: "do it", Workdir: b.dir,
		Env: []string{"FAKE_AGENT=" + strings.Join(script, "\n")},
	}
}

// run runs the fake agent and returns the folder of its record.
func (b *bench) run(t *testing.T, req agent.Request) (agent.Result, string, error) {
	t.Helper()
	result, err := b.Run(t.Context(), req, agent.Output{})
	found, _ := filepath.Glob(filepath.Join(b.root, "*", "*", "runs", result.RunID))
	if result.RunID == "" || len(found) != 1 {
		t.Fatalf("run %q is recorded %d times; %v", result.RunID, len(found), err)
	}
	return result, found[0], err
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
