package codex

import (
	"context"
	"io/fs"
	"os"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
)

// interactive describes Codex in a terminal (0.171.0).
func interactive() *registry.Terminal {
	return &registry.Terminal{
		Terminal: engine.Terminal{
			Prompt: "› ",
			// It accepts messages once it shows the workdir below the prompt.
			Ready: []string{" · /", " · ~"},
			Busy:  []string{"esc to interrupt", "Waiting for startup"},
			// It does not look busy while an answer arrives.
			Finished: []string{"Worked for "},
			WarmUp:   3 * time.Second,
			Quiet:    10 * time.Second,
			Dialogs: []engine.Dialog{
				// The folder is not trusted; nothing of the repository runs.
				{Contains: "Open restricted", Keys: []string{"Enter"}},
				// It offers a newer model than the requested one.
				{Contains: "Use existing model", Keys: []string{"Down", "Enter"}},
			},
			Approvals: []engine.ApprovalDialog{{Contains: "enter to confirm or esc to cancel", Accept: []string{"y"}, Decline: []string{"Escape"}}},
			SpaceLast: true,
		},
		Use: registry.Use{
			Options: conversation().Options,
			Check:   check,
			Prepare: prepareInteractive,
			Command: interactiveCommand,
		},
		Resume: registry.ResumeSubcommand,
	}
}

// interactiveCommand builds the argument list of the interactive CLI.
func interactiveCommand(inv registry.Invocation) (agent.Command, error) {
	approval := "on-request"
	if inv.Access == agent.AccessFull {
		approval = "never"
	}
	args := []string{"--no-alt-screen", "-C", inv.Workdir, "-s", sandboxes[inv.Access], "-a", approval}
	args = append(args, trust(inv)...)
	for _, dir := range inv.AddDirs {
		args = append(args, "--add-dir", dir)
	}
	args = append(args, choices(inv)...)
	args = append(args, config("check_for_update_on_startup", false)...)
	args = append(args, config("tui.animations", false)...)
	args = append(args, inv.Args...)
	if inv.Resume != "" {
		args = append(args, "resume", inv.Resume)
	}
	return agent.Command{Args: args}, nil
}

// prepareInteractive is prepareSession, with the session ID from the file that Codex
// creates.
func prepareInteractive(ctx context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	setup, err := prepareSession(ctx, inv, w)
	if err != nil {
		return setup, err
	}
	if _, ownHome := agent.LookupEnv(inv.Env, homeEnv); !ownHome {
		home, _ := agent.LookupEnv(setup.Env, homeEnv)
		setup.SessionID = func() string { return onlySession(home) }
	}
	return setup, nil
}

// onlySession returns the ID of the session in a private home, which has at most one.
func onlySession(home string) string {
	files, err := fs.Glob(os.DirFS(home), sessionFiles)
	if err != nil || len(files) == 0 {
		return ""
	}
	return sessionID(files[0])
}
