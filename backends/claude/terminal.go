package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
)

// interactive describes Claude Code in a terminal (2.1.332).
func interactive() *registry.Terminal {
	return &registry.Terminal{
		Terminal: engine.Terminal{
			Prompt:    "❯ ",
			Busy:      []string{"esc to interrupt"},
			Spinner:   "✢✳✶✻✽", // "✻ Cooked for 3s" follows a turn
			Quiet:     10 * time.Second,
			WarmUp:    10 * time.Second,
			Approvals: []engine.ApprovalDialog{{Contains: "Esc to cancel", Accept: []string{"1"}, Decline: []string{"Escape"}}},
			Commands:  "/!#",
			SpaceLast: true,
		},
		Use: registry.Use{
			Options: conversation().Options,
			Check:   check,
			Prepare: prepareInteractive,
			Command: interactiveCommand,
		},
		Resume: registry.ResumeFlag,
	}
}

// interactiveCommand builds the command of the interactive CLI. Variables turn off its
// updates and its trust dialog, whose answer it would store for the user. The dialog is
// not needed: either the repository's settings are left out, or the caller has trusted
// the workspace.
func interactiveCommand(inv registry.Invocation) (agent.Command, error) {
	return agent.Command{
		Args: append(options(editMode, inv), inv.Args...),
		Env:  append(env(inv), "CLAUDE_CODE_SANDBOXED=1", "DISABLE_AUTOUPDATER=1"),
	}, nil
}

// prepareInteractive is prepare with the files that it delivers in the folder for
// temporary files, which a terminal needs, and with a session ID that is set at the start.
func prepareInteractive(ctx context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	setup, err := prepare(ctx, inv, w)
	if err != nil {
		return setup, err
	}
	for n, data := range setup.Files {
		file := filepath.Join(inv.TempDir, fmt.Sprintf("delivered-%d", n))
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return registry.Setup{}, fmt.Errorf("a file for the CLI cannot be written: %w", err)
		}
		for i, arg := range setup.Args {
			if before, ok := strings.CutSuffix(arg, descriptor(n)); ok {
				setup.Args[i] = before + file
			}
		}
	}
	setup.Files = nil
	if err := addSettings(inv, &setup); err != nil {
		return registry.Setup{}, err
	}
	setup.BeginSession(inv)
	return setup, nil
}

// addSettings turns off the desktop integration of Claude Code and, for full access,
// its confirmation dialog: the caller has requested full access by name.
func addSettings(inv registry.Invocation, setup *registry.Setup) error {
	settings, err := callerSettings(inv)
	if err != nil {
		return err
	}
	for i, arg := range setup.Args {
		if arg == settingsFlag && i+1 < len(setup.Args) { // it includes the caller's
			if err := json.Unmarshal([]byte(setup.Args[i+1]), &settings); err != nil {
				return err
			}
		}
	}
	settings["disableDeepLinkRegistration"] = json.RawMessage(`"disable"`)
	if inv.Access == agent.AccessFull {
		settings["skipDangerousModePermissionPrompt"] = json.RawMessage("true")
	}
	return passSettings(settings, inv, setup)
}
