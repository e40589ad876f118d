package gemini

import (
	"errors"
	"slices"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

func TestAttachedFilesFollowThePrompt(t *testing.T) {
	t.Parallel()
	inv := registry.Invocation{Prompt: "what?", Access: agent.AccessRead, AddDirs: []string{"/a"}}
	inv.Attachments = []registry.Attachment{{Path: "/t/b-1/attachment-1.png"}, {Path: "/t/b-1/attachment-2.pdf"}}
	got, err := command(inv)
	if want := "what?\n@/t/b-1/attachment-1.png\n@/t/b-1/attachment-2.pdf"; err != nil || got.Stdin != want {
		t.Errorf("%q, %v; want %q", got.Stdin, err, want)
	}
	if !slices.Contains(got.Args, "--include-directories=/t/b-1") || len(inv.AddDirs) != 1 {
		t.Errorf("arguments %q, directories %q", got.Args, inv.AddDirs)
	}
	for _, path := range []string{"/t b/a.png", "/t,b/a.png", `/t\b/a.png`, "/t\nb/a.png", "/tä/a.png"} {
		inv.Attachments = []registry.Attachment{{Path: path}}
		if _, err := command(inv); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%q: %v, want a usage error", path, err)
		}
	}
}
