package acpagent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// kinds are the kinds of tools, as the protocol has them, with the names of tools of that
// kind, in lower case and without separators.
var kinds = []struct {
	kind  string
	names []string
}{
	{"read", []string{"read", "readfile", "readmanyfiles", "readfolder", "view", "cat", "notebookread", "ls", "list", "listdirectory", "readtextfile"}},
	{"edit", []string{"edit", "editfile", "write", "writefile", "writetextfile", "multiedit", "notebookedit", "replace", "applypatch", "filechange", "strreplace", "createfile", "create"}},
	{"delete", []string{"delete", "deletefile", "remove"}},
	{"move", []string{"move", "movefile", "rename"}},
	{"search", []string{"search", "grep", "grepsearch", "glob", "find", "findfiles", "searchfilecontent", "toolsearch", "codebasesearch"}},
	{"execute", []string{"execute", "bash", "shell", "command", "commandexecution", "runcommand", "runshellcommand", "execcommand", "localshell", "terminal", "bashoutput", "killshell"}},
	{"think", []string{"think", "task", "agent", "todowrite", "updateplan"}},
	{"fetch", []string{"fetch", "webfetch", "websearch", "googlewebsearch"}},
	{"switch_mode", []string{"switchmode", "enterplanmode", "exitplanmode"}},
}

// kindOf returns the kind of the tool with a name.
func kindOf(name string) string {
	name = strings.Map(func(c rune) rune {
		if strings.ContainsRune("_- ", c) {
			return -1
		}
		return c
	}, strings.ToLower(name))
	for _, k := range kinds {
		if slices.Contains(k.names, name) {
			return k.kind
		}
	}
	return "other"
}

// maxTitle bounds the title of a tool call, in bytes.
const maxTitle = 300

// describe returns a tool call as the protocol has it, without its status. Clients can
// accept requests by the kind, so a kind that the runtime reports is not replaced by that
// of its name.
func describe(t *agent.Tool, workdir string) toolCall {
	c := toolCall{ID: t.ID, Name: t.Name, Kind: cmp.Or(string(t.Kind), kindOf(t.Name)), Title: t.Name}
	if essence := formatters.Essence(t.Input); essence != "" {
		if c.Title != "" && c.Kind != "execute" {
			c.Title += " "
		} else {
			c.Title = ""
		}
		c.Title += essence
	}
	c.Title = strings.Join(strings.Fields(c.Title), " ")
	if len(c.Title) > maxTitle {
		c.Title = strings.ToValidUTF8(c.Title[:maxTitle], "") + "…"
	}
	if c.Title == "" {
		c.Title = "tool call"
	}
	if json.Valid(t.Input) {
		c.RawInput = append(json.RawMessage(nil), t.Input...)
		c.Locations = locationsOf(t.Input, workdir)
	}
	return c
}

// pathMembers are the members of an input that hold the path of a file.
var pathMembers = []string{"path", "file_path", "filePath", "absolute_path", "notebook_path", "dir_path"}

// maxLocations bounds the locations of a tool call.
const maxLocations = 100

// locationsOf returns the files that an input names.
func locationsOf(input json.RawMessage, workdir string) (list []location) {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return nil
	}
	add := func(path string) {
		if path != "" && len(list) < maxLocations {
			list = append(list, location{absolute(path, workdir)})
		}
	}
	for _, name := range pathMembers {
		var path string
		if json.Unmarshal(members[name], &path) == nil {
			add(path)
		}
	}
	var paths []string
	_ = json.Unmarshal(members["paths"], &paths) // or it names none
	for _, path := range paths {
		add(path)
	}
	var changes []agent.FileChange
	_ = json.Unmarshal(members["changes"], &changes)
	for _, c := range changes {
		add(c.Path)
	}
	return list
}

func absolute(path, workdir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(workdir, path)
}

// diffs returns a change of a file, a piece for each of its hunks.
func diffs(c agent.FileChange, workdir string) (pieces []piece) {
	var before, after bytes.Buffer
	var mark byte // of the line before
	some := false
	flush := func() {
		if !some {
			return
		}
		p := piece{Type: "diff", Path: absolute(c.Path, workdir), NewText: new(string)}
		*p.NewText = after.String()
		if c.Action != "add" {
			old := before.String()
			p.OldText = &old
		}
		pieces = append(pieces, p)
		before.Reset()
		after.Reset()
		some = false
	}
	for line := range strings.Lines(c.Diff) {
		body, last := line[1:], mark
		mark = line[0]
		switch mark {
		case '@':
			flush()
			continue
		case '-':
			before.WriteString(body)
		case '+':
			after.WriteString(body)
		case ' ':
			before.WriteString(body)
			after.WriteString(body)
		case '\n': // an empty line, without its mark
			before.WriteString(line)
			after.WriteString(line)
		case '\\': // the line before it ends without a line break
			if last != '+' {
				before.Truncate(len(bytes.TrimSuffix(before.Bytes(), []byte("\n"))))
			}
			if last != '-' {
				after.Truncate(len(bytes.TrimSuffix(after.Bytes(), []byte("\n"))))
			}
			continue
		default:
			continue
		}
		some = true
	}
	flush()
	return pieces
}

// maxOutput bounds the output of a tool that the client gets, in bytes.
const maxOutput = 1 << 20

// outputOf returns the readable output of a tool.
func outputOf(t *agent.Tool) []piece {
	head, tail, omitted := t.Output.Excerpt(maxOutput/2, maxOutput/2)
	s := head.String()
	if omitted > 0 {
		s += fmt.Sprintf("\n[%d bytes left out]\n%s", omitted, tail.String())
	}
	if s == "" {
		return nil
	}
	return texts(s)
}

func texts(s string) []piece {
	block := text(s)
	return []piece{{Type: "content", Content: &block}}
}
