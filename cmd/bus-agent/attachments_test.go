package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

const attachmentsTitle = `# Attachments

    bus-agent run --text "What does this chart show?" --attach chart.png --attach notes.txt
    bus-agent session start --agent claude --name review
    bus-agent session send review "And this one?" --attach next.png

` + "`--attach FILE`" + ` gives the model a file with the prompt; it can be repeated. From Go, see
` + "`agent.Request.Attachments` and `session.Message.Attachments`" + `.

A file is an image (PNG, JPEG, GIF or WebP), a PDF or UTF-8 text, as its content shows; its
name does not matter. At most 32 files with 10 MiB each and 20 MiB together can be
attached. A file must be regular. A link is followed, but not out of the repository that it
is in.

Text works with every runtime: it is put before the prompt, and counts for the limit of the
prompt. Some CLIs expand ` + "`@path`" + ` in a prompt, and then in attached text, too.

    Attached: chart.png (image/png)
    Attached: notes.txt, which ends before the line "----- end of notes.txt -----"
    first line
    last line
    ----- end of notes.txt -----

    What does this chart show?

Images and PDFs are passed on as they are by the runtimes of this table. All others, and
terminals (` + "`--mode tmux`" + `), refuse them before anything starts. A model that does not support
a file may still fail the run, or never see it: some CLIs leave it out.

| runtime | runs | sessions |
|---|---|---|
`

const attachmentsEnd = `
A runtime that is described in JSON passes images in sessions, if its agent takes them.
Codex turns a GIF into a PNG. The results of the checks ` + "`attach-text`, `attach-files`," + `
` + "`attach-refused` and `session-attach`" + ` with the real CLIs are in [compatibility](compatibility.md).

A record names the files of each message in ` + "`events.ndjson`" + ` with type, size and SHA-256, and
has no content of them. ` + "`--dry-run`" + ` shows the same.

The test TestAttachmentsPageIsUpToDate in cmd/bus-agent writes this page with -update.
`

func TestAttachmentsPageIsUpToDate(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(attachmentsTitle)
	for _, rt := range registry.Default().All() {
		session := registry.Options{}
		if rt.Session != nil {
			session = rt.Session.Options
		}
		if run := rt.Run.Options; len(run.Attachments)+len(session.Attachments) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", rt.ID, fileKinds(run.Attachments), fileKinds(session.Attachments))
		}
	}
	b.WriteString(attachmentsEnd)
	checkPage(t, "attachments.md", b.String(), "this test with -update")
}

// fileKinds returns media types in words.
func fileKinds(types []string) string {
	kinds := []string{}
	if !slices.ContainsFunc(agent.ImageTypes(), func(media string) bool { return !slices.Contains(types, media) }) {
		kinds = append(kinds, "images")
	}
	if slices.Contains(types, agent.MediaPDF) {
		kinds = append(kinds, "PDF")
	}
	return strings.Join(kinds, ", ")
}
