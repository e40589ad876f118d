package engine

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
)

// Members of the input of tools that run a command, besides the command itself: those
// without an effect on what is run, and those with the directory that it runs in.
var (
	commandDetails     = []string{"description", "timeout", "timeout_ms", "is_background", "run_in_background"}
	commandDirectories = []string{"cwd", "workdir", "directory", "dir_path"}
)

// Command returns the command line in the input of a tool that runs a command, for
// [agent.Tool]: the member "command", a text or the arguments of a program. It is empty if
// the input has something else that can change what is run, such as another directory
// outside the workdir.
func (s Start) Command(input json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return ""
	}
	for name, value := range members {
		switch {
		case name == "command", slices.Contains(commandDetails, name):
		case !slices.Contains(commandDirectories, name):
			return ""
		default:
			var dir string
			if json.Unmarshal(value, &dir) != nil || !s.InWorkdir(dir) {
				return ""
			}
		}
	}
	var line string
	if json.Unmarshal(members["command"], &line) == nil {
		return line
	}
	var args []string
	if json.Unmarshal(members["command"], &args) != nil {
		return ""
	}
	return quote(args)
}

// InWorkdir reports whether dir, where a command runs, is the workdir or inside it. The
// empty name is the workdir.
func (s Start) InWorkdir(dir string) bool {
	return dir == "" || dir == s.Workdir || s.Workdir != "" && instructions.Contains(s.Workdir, dir)
}

// quote returns the command line that has the arguments args. It is empty if an argument
// has a character that shells read in different ways.
func quote(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		if strings.ContainsAny(arg, "'\\") {
			return ""
		}
		words[i] = "'" + arg + "'"
	}
	return strings.Join(words, " ")
}

// SetFiles sets the files of a tool, unless one of them is unknown, which an empty name
// stands for.
func SetFiles(tool *agent.Tool, files []string) {
	tool.Files = nil
	if !slices.Contains(files, "") {
		tool.Files = slices.Clone(files)
		slices.Sort(tool.Files)
		tool.Files = slices.Compact(tool.Files)
	}
}
