package runner_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// The test binary is also the agent: PATH has a link to it, and FAKE_AGENT holds its
// steps, one per line.
func TestMain(m *testing.M) {
	if script, ok := os.LookupEnv("FAKE_AGENT"); ok {
		os.Exit(fakeAgent(script))
	}
	os.Exit(m.Run())
}

func fakeAgent(script string) int {
	for step := range strings.SplitSeq(script, "\n") {
		verb, arg, _ := strings.Cut(step, " ")
		switch verb {
		case "say":
			fmt.Println(arg)
		case "part":
			fmt.Print(arg)
		case "bytes": // a Go string, in one write
			text, err := strconv.Unquote(arg)
			if err != nil {
				return 97
			}
			fmt.Print(text)
		case "stderr":
			fmt.Fprintln(os.Stderr, arg)
		case "stdin":
			text, _ := io.ReadAll(os.Stdin)
			fmt.Printf("text:%s\n", bytes.ReplaceAll(text, []byte("\n"), []byte("⏎")))
		case "argv":
			fmt.Printf("text:%s\n", strings.Join(os.Args[1:], "|"))
		case "env":
			value, ok := os.LookupEnv(arg)
			fmt.Printf("text:%s=%s %t\n", arg, value, ok)
		case "dir":
			dir, _ := os.Getwd()
			fmt.Printf("text:%s\n", dir)
		case "stray":
			os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), "stray"), nil, 0o400)
		case "state":
			os.WriteFile(filepath.Join(os.Getenv("FAKE_HOME"), "state"), nil, 0o600)
		case "many":
			var n int
			fmt.Sscan(arg, &n)
			w := bufio.NewWriter(os.Stdout)
			for i := range n {
				fmt.Fprintf(w, "beat:%d\n", i)
			}
			w.Flush()
		case "both":
			var n int
			fmt.Sscan(arg, &n)
			for range n {
				fmt.Println("beat:")
				fmt.Fprintln(os.Stderr, "noise")
			}
		case "converse":
			// Each line is a turn.
			for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
				switch text := lines.Text(); text {
				case "die":
					fmt.Fprintln(os.Stderr, "out of memory", os.Getenv("MY_API_KEY"))
					return 3
				case "stay":
					for {
						time.Sleep(time.Hour)
					}
				case "silent":
				case "retry":
					fmt.Println("retry:")
				case "stderr":
					fmt.Fprintln(os.Stderr, "trying again: no route to", os.Getenv("MY_API_KEY"))
				case "fail":
					fmt.Println("text:half\nfailed:quota used up")
				default:
					fmt.Printf("text:%s\nok:\n", text)
				}
			}
		case "hang":
			for {
				time.Sleep(time.Hour)
			}
		case "exit":
			var code int
			fmt.Sscan(arg, &code)
			return code
		default:
			if err := hangStep(verb, arg); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 98
			}
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
		id, model, _ := strings.Cut(text, " ")
		return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: id, Model: model})
	case "text":
		return append(events, agent.Event{Kind: agent.KindText, Text: text})
	case "delta":
		return append(events, agent.Event{Kind: agent.KindText, MessageID: "m", Delta: true, Text: text})
	case "subagent":
		return append(events, agent.Event{Kind: agent.KindText, Subagent: "t1", Text: text})
	case "tool":
		return append(events, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "t1", Name: text}})
	case "file":
		return append(events, agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: text, Action: "add"}}})
	case "beat":
		return append(events, agent.Event{Kind: agent.KindHeartbeat})
	case "open":
		n := len(text)
		return append(events, agent.Event{Kind: agent.KindHeartbeat, Background: &n})
	case "retry":
		return append(events, agent.Event{Kind: agent.KindRetry, Text: "retrying", Failure: agent.Failure(text)})
	case "usage":
		u := agent.Usage{Cumulative: true}
		fmt.Sscan(text, &u.Input)
		return append(events, agent.Event{Kind: agent.KindUsage, Usage: &u})
	case "ok":
		return append(events, agent.Event{Kind: agent.KindResult, Text: text})
	case "failed":
		class, reason, _ := strings.Cut(text, " ")
		return append(events, agent.Event{Kind: agent.KindResult, Failed: true, Failure: agent.Failure(class), Text: reason})
	}
	return append(events, agent.Event{Kind: agent.KindRaw, Text: string(line)})
}

func fakeRuntime(id string) registry.Runtime {
	return registry.Runtime{
		ID: id, Name: "Fake " + id, Executables: []string{id}, InstallURL: "https://example.com/" + id,
		Variants: []string{"local"}, Provider: "acme", Home: registry.Home{Env: "FAKE_HOME"},
		Run: registry.Use{
			Options: registry.Options{
				Model: true, Efforts: []agent.ReasoningEffort{agent.EffortLow}, Access: agent.Accesses(),
				Resume: true,
			},
			Command: func(inv registry.Invocation) (agent.Command, error) {
				return agent.Command{
					Args:  append([]string{"--model=" + inv.Model, "--effort=" + string(inv.ReasoningEffort), "--variant=" + inv.Variant}, inv.Args...),
					Env:   []string{"FAKE_SET=by runtime", "FAKE_GONE"},
					Stdin: inv.Prompt,
				}, nil
			},
		},
		PromptLimit:   registry.Limit{Bytes: 100_000},
		Decoder:       func() formatters.Decoder { return fakeDecoder{} },
		ReportsResult: true,
		PrivateTemp:   true,
		ExitFailure: func(exit *agent.ExitError) agent.Failure {
			switch {
			case exit.Code == 41:
				return agent.FailureAuthentication
			case strings.Contains(exit.Reason+exit.Stderr, "no credits"):
				return agent.FailureQuota
			}
			return ""
		},
		AnswerFailure: func(answer string) (agent.Failure, bool) {
			return agent.FailureAuthentication, strings.HasPrefix(answer, "Please log in")
		},
		QuietStderr: func(line []byte) bool { return bytes.HasPrefix(line, []byte("noise")) },
		RetryStderr: func(line []byte) bool { return bytes.HasPrefix(line, []byte("trying again")) },
	}
}

// bench is a registry of fake runtimes, some of them installed, and a runner on
// it that collects its warnings.
type bench struct {
	runner.Runner
	dir      string
	path     string
	warnings []string
}

func newBench(t *testing.T, installed ...string) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), path: t.TempDir()}
	reg := new(registry.Registry)
	for _, id := range []string{"beta", "alpha", "gamma"} {
		if err := reg.Register(fakeRuntime(id)); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range installed {
		if err := os.Symlink(self, filepath.Join(b.path, id)); err != nil {
			t.Fatal(err)
		}
	}
	b.Registry = reg
	b.Environ = []string{"PATH=" + b.path, "GORACE=atexit_sleep_ms=0", "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "FAKE_GONE=x", "MY_API_KEY=sk-very-secret"}
	b.Warn = func(line string) { b.warnings = append(b.warnings, line) }
	return b
}

func (b *bench) request(script ...string) agent.Request {
	return agent.Request{
		Prompt:  "do it",
		Workdir: b.dir,
		Env:     []string{"FAKE_AGENT=" + strings.Join(script, "\n")},
	}
}
