package runner

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// checkAttachments refuses attachments that the runtime cannot pass to its model.
func (p *prepared) checkAttachments() error {
	if p.purpose.talks() && p.req.Prompt == "" && len(p.req.Attachments) > 0 {
		return agent.Usagef("files are attached to no message; nothing was started")
	}
	rt := p.selection.Runtime
	err := agent.CheckAttachments(p.req.Attachments, p.use.Options.Attachments, func(a agent.Attachment) error {
		return cannot(rt, fmt.Sprintf("pass the file %q (%s) to its model", a.Name, a.MediaType()))
	})
	return p.wrap(agent.ErrUsage, err)
}

// settleAttachments makes the attachments of the invocation.
func (p *prepared) settleAttachments() {
	for i, a := range agent.Files(p.req.Attachments) {
		file := registry.Attachment{Attachment: a}
		if p.namesAttachments() {
			file.Path = fmt.Sprintf("attachment-%d%s", i+1, extensions[a.MediaType()])
		}
		p.inv.Attachments = append(p.inv.Attachments, file)
	}
}

// extensions are those of the names of files. CLIs know the type of a file by them.
var extensions = map[string]string{
	agent.MediaPNG: ".png", agent.MediaJPEG: ".jpg", agent.MediaGIF: ".gif", agent.MediaWebP: ".webp", agent.MediaPDF: ".pdf",
}

// namesAttachments reports whether the CLI gets attachments as names of files.
func (p *prepared) namesAttachments() bool {
	return !p.purpose.talks() && p.use.Options.AttachmentFiles
}

// needsTempDir reports whether the run has a folder for temporary files.
func (p *prepared) needsTempDir() bool {
	return p.selection.Runtime.PrivateTemp || len(p.inv.Attachments) > 0 && p.namesAttachments()
}

// writeAttachments writes the files that the CLI reads to the folder for temporary files.
func (p *prepared) writeAttachments() error {
	if !p.namesAttachments() {
		return nil
	}
	for i := range p.inv.Attachments {
		a := &p.inv.Attachments[i]
		a.Path = filepath.Join(p.inv.TempDir, a.Path)
		if err := os.WriteFile(a.Path, a.Data, 0o600); err != nil {
			return p.wrap(agent.ErrAgent, fmt.Errorf("writing an attachment: %w", err))
		}
	}
	return nil
}
