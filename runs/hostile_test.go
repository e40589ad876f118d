package runs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// An agent can put anything into its record folder. It cannot delay the end of its run
// or get other files into the record.
func TestAgentReplacesFilesOfItsRecord(t *testing.T) {
	t.Parallel()
	foreign := filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(foreign, []byte("a foreign file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agent-stdout.txt", "agent-stderr.txt", "events.ndjson", "output.md", "prompt.md", "run-info.yaml", "run-info.yaml.lock", "../../TASK-MESSAGE-BUS.md"} {
		for _, what := range []string{"fifo", "sparse", foreign, "/dev/zero"} {
			t.Run(filepath.Base(name)+" "+filepath.Base(what), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, &runs.Records{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := b.Run(ctx, b.request("stderr hush", "say unread", "swap "+name+" "+what, "exit 3"), agent.Output{})
				if err == nil || ctx.Err() != nil {
					t.Errorf("ended with %v, %v", err, ctx.Err())
				}
				if got := read(t, foreign); got != "a foreign file" {
					t.Errorf("the foreign file is now %q", got)
				}
				found, _ := filepath.Glob(filepath.Join(b.root, "*", "*", "runs", "*", "output.md"))
				for _, path := range found {
					if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() < 1<<20 && read(t, path) != "unread\n" {
						t.Errorf("output.md is %q", read(t, path))
					}
				}
				if name == "output.md" && (len(b.warnings) != 1 || !strings.Contains(b.warnings[0], "output.md: ")) {
					t.Errorf("warnings %q", b.warnings)
				}
			})
		}
	}
}

func TestAnswerFileIsMasked(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	_, dir, err := b.run(t, b.request("outputsecret", "say ok:"))
	if err != nil || read(t, dir, "output.md") != "the key is ***!" {
		t.Errorf("output.md is %q, %v", read(t, dir, "output.md"), err)
	}
	expectPrivate(t, b.root)
}

// A reader of the events joins the pieces of a text.
func TestSecretInPiecesIsMasked(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	_, dir, err := b.run(t, b.request("say delta:the key is sk-xai", "say delta:-sec", "say delta:ret, and sk-x", "say delta: is not one. sk-xai-sec", "say tool:look", "say delta:sk-xai-sec", "say ok:"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "events.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var said []string
	text := ""
	if err := runs.ReadEvents(f, func(e *runs.Event) error {
		if e.Kind == agent.KindText {
			if !e.Delta || e.MessageID != "m" || e.Time.IsZero() {
				t.Errorf("piece %+v", e)
			}
			text += e.Text
			return nil
		}
		if text != "" {
			said = append(said, text)
			text = ""
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := "the key is ***, and sk-x is not one. sk-xai-sec|sk-xai-sec"; strings.Join(said, "|") != want {
		t.Errorf("the pieces are %q, want %q", said, want)
	}
}

func TestCommandLineIsMasked(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	quoted := "it's-a-secret-value"
	b.Environ = append(b.Environ, "QUOTED_TOKEN="+quoted)
	req := b.request("say ok:")
	req.Args = []string{quoted, strings.Repeat("a", 8150) + secret + strings.Repeat("b", 100)}
	_, dir, err := b.run(t, req)
	if err != nil {
		t.Fatal(err)
	}
	info, err := runs.ReadInfo(filepath.Join(dir, "run-info.yaml"))
	if err != nil || strings.Contains(info.CommandLine, "s-a-secret") || strings.Contains(info.CommandLine, `sk-"`) || !strings.Contains(info.CommandLine, "'***'") ||
		!strings.HasSuffix(info.CommandLine, "… < "+shellPath(info.PromptPath)) {
		t.Errorf("command line %.100q…%q, %v", info.CommandLine, info.CommandLine[max(0, len(info.CommandLine)-300):], err)
	}
}
