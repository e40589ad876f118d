package claude

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

const promptFileFlag = "--append-system-prompt-file"

// executed names the files of a directory whose content Claude Code runs if it uses the
// repository's settings.
var executed = []string{".claude/settings.json", ".claude/settings.local.json", ".mcp.json"}

// prepare delivers the instructions of the repository and the MCP servers of the caller in
// inherited files. Nothing is written.
func prepare(ctx context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	setup, err := prepareInstructions(ctx, inv, w)
	if list := servers(inv); err == nil && len(list) > 0 {
		setup.Args = append(setup.Args, "--mcp-config="+descriptor(len(setup.Files)))
		setup.Files = append(setup.Files, agent.MCPConfig(list))
	}
	return setup, err
}

// descriptor returns the path of the element i of Setup.Files.
func descriptor(i int) string { return fmt.Sprintf("/dev/fd/%d", 3+i) }

// prepareInstructions puts the instructions of the repository into one system prompt file.
func prepareInstructions(ctx context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	if err := inv.RefuseHome(userHome); err != nil {
		return registry.Setup{}, err
	}
	var setup registry.Setup
	chain := w.Chain()
	tree, err := openTree(chain)
	if err != nil {
		return registry.Setup{}, err
	}
	defer tree.close()

	prompt, warnings, err := chain.Text(instructions.MaxBytes)
	if err != nil {
		return registry.Setup{}, err
	}
	setup.Warnings = warnings
	if inv.TrustWorkspace {
		if err := exclude(ctx, inv, tree, &setup); err != nil {
			return registry.Setup{}, err
		}
	} else {
		prompt = tree.appendMemory(prompt, userMemory(inv), &setup)
		if left := tree.present(executed); len(left) > 0 {
			setup.Warnings = append(setup.Warnings, fmt.Sprintf("the repository's %s left out; use --trust-workspace to let what they name run", listed(left)))
		}
	}
	if prompt = joined(prompt, inv.AppendSystemPrompt); prompt == "" {
		return setup, nil
	}
	if _, taken := lastValue(inv.Args, promptFileFlag); taken {
		return registry.Setup{}, agent.Usagef("%s would replace the project instructions and the additional system prompt; pass the text with --append-system-prompt instead", promptFileFlag)
	}
	setup.Args = append(setup.Args, promptFileFlag, descriptor(0))
	setup.Files = [][]byte{[]byte(prompt)}
	return setup, nil
}

// joined returns the project instructions with the text of the caller after them.
func joined(instructions, text string) string {
	if instructions == "" || text == "" {
		return instructions + text
	}
	return strings.TrimRight(instructions, "\n") + "\n\n" + text
}

// listed joins names for a sentence, with the verb.
func listed(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
}

// homeEnv names the variable that moves the folder of Claude Code's settings and
// logins.
const homeEnv = "CLAUDE_CONFIG_DIR"

// userHome is the folder of Claude Code's settings and logins.
var userHome = registry.Home{Env: homeEnv, Folder: ".claude", Logins: logins()}

// userConfig describes the user's configuration.
var userConfig = registry.UserConfig{
	Modes: []agent.UserConfig{agent.UserConfigOn, agent.UserConfigOff},
	Files: func(inv registry.Invocation) []agent.ConfigFile {
		return registry.ConfigFiles(inv.UserHome(userHome), inv.UserConfig != agent.UserConfigOff, "settings.json")
	},
}

// logins returns the files with the login; none on macOS, which has it in the keychain.
func logins() []string {
	if runtime.GOOS == "darwin" {
		return nil
	}
	return []string{".credentials.json"}
}

// userMemory returns the path of the user's CLAUDE.md, which Claude Code reads itself;
// "" without a home, or if it is left out.
func userMemory(inv registry.Invocation) string {
	if dir := inv.UserHome(userHome); dir != "" && inv.UserConfig != agent.UserConfigOff {
		return filepath.Join(dir, "CLAUDE.md")
	}
	return ""
}
