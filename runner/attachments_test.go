package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

var (
	picture = agent.Attachment{Name: "chart.png", Data: []byte("\x89PNG\r\n\x1a\npixels")}
	notes   = agent.Attachment{Name: "notes.txt", Data: []byte("one\n")}
	paper   = agent.Attachment{Name: "paper.pdf", Data: []byte("%PDF-1.7")}
)

const notesText = `Attached: notes.txt, which ends before the line "----- end of notes.txt -----"
one
----- end of notes.txt -----

`

// attaching returns a bench with the runtime "attacher", whose runs take PNG files by
// their names.
func attaching(t *testing.T, read func(registry.Invocation)) *bench {
	b := newBench(t, "alpha")
	rt := fakeRuntime("attacher")
	rt.Executables = []string{"alpha"}
	rt.PromptLimit = registry.Limit{Bytes: 500}
	rt.Run.Options.Attachments, rt.Run.Options.AttachmentFiles = []string{agent.MediaPNG}, true
	command := rt.Run.Command
	rt.Run.Command = func(inv registry.Invocation) (agent.Command, error) {
		if read != nil {
			read(inv)
		}
		return command(inv)
	}
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAttachedTextPrecedesThePrompt(t *testing.T) {
	t.Parallel()
	b := attaching(t, nil)
	for _, runtime := range []string{"attacher", "alpha"} {
		req := b.request("stdin", "say ok:")
		req.Runtime, req.Prompt, req.Attachments = runtime, "what?", []agent.Attachment{notes}
		result, err := b.Run(t.Context(), req, agent.Output{})
		if got := strings.ReplaceAll(result.Text, "⏎", "\n"); err != nil || got != notesText+"what?" {
			t.Errorf("%s: %q, %v", runtime, got, err)
		}
	}
}

func TestAttachedFilesExistDuringTheRun(t *testing.T) {
	t.Parallel()
	var path string
	b := attaching(t, func(inv registry.Invocation) {
		if len(inv.Attachments) != 1 {
			t.Errorf("%d files", len(inv.Attachments))
			return
		}
		path = inv.Attachments[0].Path
		if data, err := os.ReadFile(path); err != nil || string(data) != string(picture.Data) || filepath.Base(path) != "attachment-1.png" {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	})
	req := b.request("stdin", "say ok:")
	req.Runtime, req.Attachments = "attacher", []agent.Attachment{notes, picture}
	result, err := b.Run(t.Context(), req, agent.Output{})
	if err != nil || !strings.Contains(result.Text, "Attached: chart.png (image/png)") {
		t.Errorf("%q, %v", result.Text, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) || len(b.leftBehind(t)) > 0 {
		t.Errorf("%v; %v", err, b.leftBehind(t))
	}
}

func TestDryRunWritesNoAttachment(t *testing.T) {
	t.Parallel()
	b := attaching(t, func(inv registry.Invocation) {
		if got := inv.Attachments[0].Path; got != "attachment-1.png" {
			t.Errorf("%q", got)
		}
	})
	req := b.request("stdin", "say ok:")
	req.Runtime, req.Attachments = "attacher", []agent.Attachment{picture}
	if _, err := b.DryRun(t.Context(), req); err != nil || len(b.leftBehind(t)) > 0 {
		t.Errorf("%v; %v", err, b.leftBehind(t))
	}
}

// A session has no files of attachments, and a terminal takes none.
func TestAttachmentIsRefusedBeforeTheStart(t *testing.T) {
	t.Parallel()
	b := attaching(t, nil)
	for name, c := range map[string]struct {
		runtime string
		list    []agent.Attachment
		want    string
	}{
		"a type of no runtime": {"alpha", []agent.Attachment{picture}, `cannot pass the file "chart.png" (image/png) to its model; nothing was started`},
		"another type":         {"attacher", []agent.Attachment{picture, paper}, `cannot pass the file "paper.pdf" (application/pdf) to its model; nothing was started`},
		"no name":              {"attacher", []agent.Attachment{{Data: []byte("x")}}, "the name must be that of a file"},
		"text over the limit":  {"attacher", []agent.Attachment{{Name: "a", Data: []byte(strings.Repeat("x", 500))}}, "its limit is 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := b.request("stdin", "say ok:")
			req.Runtime, req.Attachments = c.runtime, c.list
			started := false
			_, err := b.Run(t.Context(), req, agent.Output{Started: func(agent.Start) { started = true }})
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(fmt.Sprint(err), c.want) || started {
				t.Errorf("%v, want %q; started: %v", err, c.want, started)
			}
		})
	}
	for _, prompt := range []string{"", "what?"} {
		b := conversing(t)
		req := b.sessionRequest("converse")
		req.Prompt, req.Attachments = prompt, []agent.Attachment{picture}
		want := map[bool]string{true: "files are attached to no message", false: "cannot pass the file"}[prompt == ""]
		if _, err := b.StartSession(t.Context(), req, session.Options{}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The record names the files of a run, and has the prompt without their text.
func TestRecorderGetsAttachmentsWithoutTheirText(t *testing.T) {
	t.Parallel()
	b := attaching(t, nil)
	r := &recorder{add: agent.Recording{Prompt: "before: what?"}}
	b.Recorder = r
	req := b.request("stdin", "say ok:")
	req.Runtime, req.Prompt, req.Attachments = "attacher", "what?", []agent.Attachment{notes, picture}
	result, err := b.Run(context.Background(), req, agent.Output{})
	if got := strings.ReplaceAll(result.Text, "⏎", "\n"); err != nil || !strings.HasSuffix(got, "Attached: chart.png (image/png)\n\nbefore: what?") {
		t.Errorf("%q, %v", got, err)
	}
	if r.run.Request.Prompt != "what?" || len(r.run.Request.Attachments) != 2 {
		t.Errorf("%q with %d files", r.run.Request.Prompt, len(r.run.Request.Attachments))
	}
}
