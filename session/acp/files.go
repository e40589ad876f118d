package acp

import (
	"encoding/json"
	"strings"
)

// files returns every file that a tool call names, in the request and in what the
// agent has reported about the call before. Where it names one in a form that is
// not understood, an empty name is among them.
func (d *decoder) files(c *toolCall) []string {
	names := c.files()
	t := d.tools[c.ID]
	if d.forgot || t != nil && t.done {
		names = append(names, "") // what was reported is not known any more
	}
	if t != nil {
		names = append(names, t.toolCall.files()...)
		names = append(names, diffs(t.pieces)...)
	}
	return names
}

func (c *toolCall) files() []string {
	var names []string
	for _, l := range c.Locations {
		names = append(names, l.Path)
	}
	if len(c.Content) > 0 {
		var pieces []piece
		if json.Unmarshal(c.Content, &pieces) != nil {
			names = append(names, "")
		}
		names = append(names, diffs(pieces)...)
	}
	if len(c.RawInput) > 0 {
		var input any
		if json.Unmarshal(c.RawInput, &input) != nil {
			names = append(names, "")
		}
		names = append(names, inputFiles(input, false)...)
	}
	return names
}

func diffs(pieces []piece) []string {
	var names []string
	for _, p := range pieces {
		if p.Type == "diff" || p.Path != "" {
			names = append(names, p.Path)
		}
	}
	return names
}

// inputFiles returns what a tool's input names: members that are named like one
// with a path, and names of members that look like one. The protocol has no names
// for them.
func inputFiles(value any, isPath bool) []string {
	var names []string
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if strings.ContainsAny(name, `/\.`) {
				names = append(names, name)
			}
			names = append(names, inputFiles(member, namesPath(name))...)
		}
	case []any:
		for _, element := range v {
			names = append(names, inputFiles(element, isPath)...)
		}
	case string:
		if isPath {
			names = append(names, v)
		}
	}
	return names
}

// Names of members that hold paths: how they end, and what they are.
var (
	pathEndings = []string{"path", "paths", "file", "files", "filename", "filenames", "uri", "url", "dir", "dirs", "directory", "directories", "folder", "folders"}
	pathNames   = map[string]bool{"from": true, "to": true, "source": true, "destination": true, "dest": true, "target": true, "root": true, "cwd": true}
)

func namesPath(name string) bool {
	name = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	for _, ending := range pathEndings {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return pathNames[name]
}
