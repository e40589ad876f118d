package backendtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// sample is a runtime that can do everything, as its author would write it.
func sample() Harness {
	return Harness{
		Runtime: registry.Runtime{
			ID: "sample", Name: "Sample CLI", Variants: []string{"local"}, Executables: []string{"sample", "sample-cli"},
			InstallURL: "https://example.com/sample", TokenEnv: []string{"SAMPLE_API_KEY"},
			Run: registry.Use{
				Options: registry.Options{
					Model: true, Efforts: agent.Efforts(), Verbosity: agent.Verbosities(), Access: agent.Accesses(),
					AppendSystemPrompt: true, AllowTools: true, DenyTools: true, AllowCommands: true, AddDirs: true, Resume: true, Continue: true, MaxTurns: true,
					Schema: func(inv registry.Invocation) bool { return bytes.Contains(inv.Schema, []byte("additionalProperties")) },
				},
				SlashCommands: true,
				Prepare:       samplePrepare,
				Command:       sampleCommand,
			},
			PromptLimit:   registry.Limit{Bytes: 2 << 20},
			Decoder:       func() formatters.Decoder { return new(sampleDecoder) },
			Recognize:     func(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"sample":"session"`)) },
			ReportsResult: true,
			PrivateTemp:   true,
			EmptyDirs:     []string{".sample-empty"},
			Instructions: &registry.Instructions{
				MaxBytes: instructions.MaxBytes,
				Owned:    []instructions.Owned{{Home: sampleHome}, {Block: &sampleBlock}},
			},
		},
		Lines: Lines{
			Session:    `{"sample":"session","id":"s-1"}`,
			Text:       `{"sample":"text","id":"{n}","text":"{text}"}`,
			ToolCall:   `{"sample":"call","id":"t"}`,
			ToolResult: `{"sample":"output","id":"t","text":"{text}"}`,
			Success:    `{"sample":"done"}`,
			Failure:    `{"sample":"failed","text":"{text}"}`,
			Retry:      `{"sample":"retry","text":"{text}"}`,
			Unknown:    `{"sample":"hologram"}`,
		},
		SessionFile: "$SAMPLE_HOME/sessions/s-1.json",
	}
}

const sampleHome = ".sample/bus"

var sampleBlock = instructions.Block{Path: "SAMPLE.md", Name: "agents", Comment: instructions.CommentHTML, Text: "Read AGENTS.md.\n"}

func sampleCommand(inv registry.Invocation) (agent.Command, error) {
	args := []string{"--access=" + string(inv.Access), "--model=" + inv.Model, "--variant=" + inv.Variant,
		"--effort=" + string(inv.ReasoningEffort), "--verbosity=" + string(inv.Verbosity), "--turns=" + strconv.Itoa(inv.MaxTurns), "--schema=" + string(inv.Schema), "--system=" + inv.AppendSystemPrompt,
		"--tools=" + strings.Join(inv.AllowTools, ","), "--no-tools=" + strings.Join(inv.DenyTools, ",")}
	for _, dir := range inv.AddDirs {
		args = append(args, "--dir="+dir)
	}
	for _, pattern := range inv.AllowCommands {
		args = append(args, "--allow="+pattern)
	}
	if id := inv.Resume; id != "" {
		args = append(args, "--resume="+id)
	}
	return agent.Command{Args: append(args, inv.Args...), Stdin: inv.Prompt, Env: []string{"SAMPLE_QUIET=1"}}, nil
}

func samplePrepare(_ context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	setup := registry.Setup{}
	home, _, err := w.RunHome(sampleHome, "", false)
	if err != nil {
		return setup, err
	}
	setup.Env = []string{"SAMPLE_HOME=" + home.Path()}
	setup.Close = func(context.Context) []string {
		home.Keep("sessions", "kept")
		home.Remove()
		return nil
	}
	if inv.Continue {
		setup.Resume = "s-1"
	}
	if inv.TrustWorkspace {
		if err := w.AddBlock(sampleBlock); err != nil {
			return setup, errors.Join(err, home.Remove())
		}
	}
	text, warnings, err := w.Chain().Text(instructions.MaxBytes)
	setup.Warnings = warnings
	if text != "" {
		setup.Files = [][]byte{[]byte(text)}
		setup.Args = []string{"--rules=/dev/fd/3"}
	}
	return setup, err
}

type sampleDecoder struct{}

type sampleLine struct {
	Sample, ID, Text string
}

func (*sampleDecoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	var l sampleLine
	if len(bytes.TrimSpace(raw)) == 0 {
		return events
	}
	e := agent.Event{Kind: agent.KindRaw, Text: string(raw)}
	if json.Unmarshal(raw, &l) == nil {
		switch l.Sample {
		case "session":
			e = agent.Event{Kind: agent.KindSessionStarted, SessionID: l.ID}
		case "text":
			e = agent.Event{Kind: agent.KindText, Text: l.Text, MessageID: l.ID}
		case "call":
			e = agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: l.ID, Name: "sample"}}
		case "output":
			e = agent.Event{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: l.ID, Name: "sample", Output: agent.Plain(l.Text)}}
		case "retry":
			e = agent.Event{Kind: agent.KindRetry, Text: l.Text}
		case "done":
			e = agent.Event{Kind: agent.KindResult}
		case "failed":
			e = agent.Event{Kind: agent.KindResult, Failed: true, Text: l.Text}
		}
	}
	return append(events, e)
}

func TestSampleConforms(t *testing.T) { Run(t, sample()) }

// sessionless is the sample of a CLI that knows no sessions.
func sessionless() Harness {
	h := sample()
	h.Runtime.Run.Options.Resume, h.Runtime.Run.Options.Continue = false, false
	h.Runtime.Recognize = func(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"sample":"text"`)) && json.Valid(line) }
	h.Lines.Session, h.SessionFile = "", ""
	return h
}

func TestSampleWithoutSessionsConforms(t *testing.T) { run(t, sessionless(), withoutFiles()) }

// withoutFiles returns the rules but the longest, for samples that differ from others in
// what that does not see.
func withoutFiles() []rule {
	return slices.DeleteFunc(rules(), func(r rule) bool { return r.name == "hostile-files" })
}

// Options are refused even if the sample lines name a session.
func TestRefusalsNeedNoSession(t *testing.T) {
	t.Parallel()
	h := sessionless()
	h.Lines.Session = `{"sample":"session"}`
	if err := check(h, "options-refused"); err != nil {
		t.Error(err)
	}
}

func TestCheckNeedsNoLines(t *testing.T) {
	t.Parallel()
	var names []string
	for _, r := range withoutFiles() { // see ExampleCheck
		names = append(names, r.name)
	}
	if err := check(Harness{Runtime: sample().Runtime}, names...); err != nil {
		t.Error(err)
	}
}
