package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// prepare refuses a workspace whose files the CLI would run. Nothing is written:
// the CLI reads AGENTS.md itself.
func prepare(_ context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	chain := w.Chain()
	if err := inv.RefuseHome(userHome); err != nil {
		return registry.Setup{}, err
	}
	if file := executed(inv, chain); file != "" && !inv.TrustWorkspace {
		return registry.Setup{}, agent.Usagef("cursor would run what %s names, and has no option against it; "+
			"nothing was started; use --trust-workspace to let it, or remove the file", file)
	}
	var setup registry.Setup
	if !chain.WithinLimit(instructions.MaxBytes) {
		setup.Warnings = append(setup.Warnings, fmt.Sprintf(
			"the %s files have %d bytes; Cursor reads them itself and may leave out a part", instructions.FileName, chain.Size()))
	}
	return setup, nil
}

// userHome is the folder of the CLI's settings.
var userHome = registry.Home{Folder: ".cursor"}

// executed returns the path, relative to the root, of a file of the repository that
// makes the CLI run something; "" if there is none.
func executed(inv registry.Invocation, chain instructions.Chain) string {
	for _, dir := range chain.Dirs() {
		if inv.IsHome(registry.Home{}, dir) {
			continue
		}
		for _, name := range []string{".cursor/hooks.json", ".cursor/mcp.json"} {
			file := filepath.Join(dir, name)
			if _, err := os.Lstat(file); !isAbsent(err) {
				return relative(chain, file)
			}
		}
		for _, name := range []string{".claude/settings.json", ".claude/settings.local.json"} {
			if file := filepath.Join(dir, name); mayHaveHooks(file) {
				return relative(chain, file)
			}
		}
	}
	return ""
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func relative(chain instructions.Chain, file string) string {
	if rel, err := filepath.Rel(chain.Root, file); err == nil {
		return rel
	}
	return file
}

// settingsLimit is how many bytes of settings are read.
const settingsLimit = 1 << 20

// mayHaveHooks reports whether settings of Claude Code have hooks or cannot be parsed.
func mayHaveHooks(file string) bool {
	data, err := registry.ReadFile(file, settingsLimit)
	if err != nil {
		return !isAbsent(err)
	}
	var settings struct {
		Hooks json.RawMessage `json:"hooks"`
	}
	return json.Unmarshal(data, &settings) != nil || settings.Hooks != nil
}
