package gemini

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// readingTools change nothing. Every approval mode permits their calls.
var readingTools = []string{"glob", "google_web_search", "grep_search", "list_directory", "read_file", "update_topic", "write_todos"}

// editTools are the further tools whose calls the mode auto_edit permits.
var editTools = []string{"invoke_agent", "replace", "web_fetch", "write_file"}

// planTools change the approval mode. In runs without a terminal 0.61.0 approves its
// own plan and lets every tool call through.
var planTools = []string{"enter_plan_mode", "exit_plan_mode"}

const shellTool = "run_shell_command"

// exclude removes tools, in every approval mode.
func (s *settings) exclude(names []string) error {
	excluded, err := s.toolList("exclude")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(excluded, name) {
			excluded = append(excluded, name)
		}
	}
	return s.all.set(excluded, "tools", "exclude")
}

// only limits the tools to those of the request. In all modes but plan, 0.61.0 also permits
// every call of a tool in this list, so the list has only what the access permits. MCP
// servers of the user's settings are left out, as plan mode does not apply the list to
// their tools.
func (s *settings) only(inv registry.Invocation) error {
	users, err := s.toolList("core")
	if err != nil {
		return err
	}
	core := []string{}
	for _, entry := range users {
		if name, _, _ := strings.Cut(entry, "("); slices.Contains(inv.AllowTools, name) {
			core = append(core, entry)
		}
	}
	for _, name := range inv.AllowTools {
		switch {
		case users != nil:
		case permitted(name, inv):
			core = append(core, name)
		case name == shellTool:
			for _, pattern := range inv.AllowCommands {
				core = append(core, name+"("+pattern+")")
			}
		}
	}
	if err := s.all.set(nil, "mcpServers"); err != nil {
		return err
	}
	return s.all.set(core, "tools", "core")
}

// permitted reports whether the access permits every call of a tool, or if plan mode
// judges each call.
func permitted(name string, inv registry.Invocation) bool {
	return inv.Access != agent.AccessWrite || slices.Contains(readingTools, name) || slices.Contains(editTools, name) ||
		slices.ContainsFunc(inv.MCPServers, func(s agent.MCPServer) bool { return strings.HasPrefix(name, "mcp_"+s.Name+"_") })
}

// toolList returns a list of names in the settings of tools.
func (s *settings) toolList(key string) (names []string, err error) {
	value, err := s.all.get("tools", key)
	if err == nil && value != nil && json.Unmarshal(value, &names) != nil {
		err = errors.New("tools." + key + " is not a list of names")
	}
	return names, err
}
