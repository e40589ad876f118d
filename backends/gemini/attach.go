package gemini

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// attach returns inv with "@path" of each attached file after the prompt. The CLI reads
// these files itself, if they are below the workdir or an added directory.
func attach(inv registry.Invocation) (registry.Invocation, error) {
	if len(inv.Attachments) == 0 {
		return inv, nil
	}
	inv.AddDirs = append(slices.Clone(inv.AddDirs), filepath.Dir(inv.Attachments[0].Path))
	for _, a := range inv.Attachments {
		// Others would end the path, or divide the list of directories.
		if strings.Trim(a.Path, "/._-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
			return inv, agent.Usagef("the folder for temporary files, %q, has characters with which attachments cannot be named; set TMPDIR to another", filepath.Dir(a.Path))
		}
		inv.Prompt += "\n@" + a.Path
	}
	return inv, nil
}
