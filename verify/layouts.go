package verify

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/modeltest"
)

// A layout is a repository with AGENTS.md files, by slash-separated path, in which a run
// begins in a workdir.
type layout struct {
	workdir string
	files   map[string]string
	long    string            // the name of a file that begins with longRules
	links   map[string]string // the targets by name

	// context holds the texts of the context files that Target.Context names, by folder.
	// A text that begins with linkTo is a link to a file instead.
	context map[string]string
	// replaced is the text of the files that Target.Replaces names, in the root; "" for
	// none.
	replaced string
}

const linkTo = "-> "

// The marks in the files: of the root, the folder below it, the one below that, and one
// that is not around the workdir.
const (
	rootMark   = "MARKER-OF-THE-ROOT"
	middleMark = "MARKER-OF-THE-MIDDLE"
	deepMark   = "MARKER-OF-THE-WORKDIR"
	otherMark  = "MARKER-OF-ANOTHER-FOLDER"
)

func rule(mark string) string { return "Rules. " + mark + "\n" }

// windowsText has the line ends of Windows.
const windowsText = "One rule.\r\n\r\nAnother. " + rootMark + "\r\nThe last.\r\n"

// The layouts.
var (
	atRoot = layout{files: map[string]string{"AGENTS.md": rule(rootMark)}}
	nested = layout{workdir: "services/a", files: map[string]string{
		"AGENTS.md":            rule(rootMark),
		"services/AGENTS.md":   rule(middleMark),
		"services/a/AGENTS.md": rule(deepMark),
		"services/b/AGENTS.md": rule(otherMark),
	}}
	// A context file of the CLI is next to AGENTS.md.
	adjacent = layout{files: map[string]string{"AGENTS.md": rule(rootMark)}, context: map[string]string{"": "Be brief.\n"}}
	// Another file of the CLI replaces AGENTS.md.
	replaced = layout{files: map[string]string{"AGENTS.md": rule(rootMark)}, replaced: rule(otherMark)}
	// AGENTS.md is a link, and a context file of the CLI is one to it. Below it is a long
	// file, which a context file imports.
	linked = layout{
		workdir: "services",
		files:   map[string]string{"rules/rules.md": rule(rootMark), "services/AGENTS.md": rule(middleMark)},
		long:    "services/AGENTS.md",
		links:   map[string]string{"AGENTS.md": "rules/rules.md"},
		context: map[string]string{"": linkTo + "AGENTS.md", "services/": "@AGENTS.md\n"},
	}
	// An empty file is between others, of which the first comes from Windows.
	uneven = layout{workdir: "services/a", files: map[string]string{
		"AGENTS.md":            windowsText,
		"services/AGENTS.md":   "",
		"services/a/AGENTS.md": rule(deepMark),
	}}
)

// longRules returns text of 100 KiB, no line of which is like another.
func longRules() string {
	var text strings.Builder
	for i := 0; text.Len() < 100<<10; i++ {
		fmt.Fprintf(&text, "rule %d of many\n", i)
	}
	return text.String()
}

// layoutTake names the run of a scene that begins in a layout.
const layoutTake = "layout"

// arrange is start with the files of a layout.
func (t *trial) arrange(script modeltest.Script, l layout) error {
	if err := t.start(script, l.files); err != nil {
		return err
	}
	links, files := maps.Clone(l.links), map[string]string{}
	if l.long != "" {
		files[l.long] = longRules() + l.files[l.long]
	}
	for _, name := range t.target.Context {
		for folder, text := range l.context {
			if target, ok := strings.CutPrefix(text, linkTo); ok {
				links[folder+name] = target
			} else {
				files[folder+name] = text
			}
		}
	}
	if l.replaced != "" {
		for _, name := range t.target.Replaces {
			files[name] = l.replaced
		}
	}
	if err := writeFiles(t.work, files); err != nil {
		return err
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(t.work, name)); err != nil {
			return err
		}
	}
	return os.MkdirAll(t.workdir(l), 0o755)
}

func (t *trial) workdir(l layout) string { return filepath.Join(t.work, filepath.FromSlash(l.workdir)) }

// arrived checks that the marks are in the first request of a scene, each once and in
// order, and no others, whatever the end of the run.
func arrived(take string, marks ...string) func(*trial) error {
	return func(t *trial) error {
		request, err := t.firstRequest(take)
		if err != nil {
			return err
		}
		var at []int
		for _, mark := range []string{rootMark, middleMark, deepMark, otherMark} {
			want := 0
			if slices.Contains(marks, mark) {
				want = 1
				at = append(at, strings.Index(strings.Join(request.Texts(), "\n"), mark))
			}
			if n := request.Count(mark); n != want {
				return fmt.Errorf("the text with %s arrived %d times, want %d", mark, n, want)
			}
		}
		if !slices.IsSorted(at) {
			return errors.New("the files arrived in another order than from the root to the workdir")
		}
		if warning := t.takes[take].warning("AGENTS.md"); warning != "" {
			return fmt.Errorf("the run warned: %s", quote(warning))
		}
		return nil
	}
}

// rulesOnce checks that a request of a conversation has each mark once, if the runtime
// takes instructions.
func (t *trial) rulesOnce(r *modeltest.Request, marks ...string) error {
	if t.runtime.Instructions == nil {
		return nil
	}
	for _, mark := range marks {
		if n := r.Count(mark); n != 1 {
			return fmt.Errorf("the text with %s is in the conversation %d times", mark, n)
		}
	}
	return nil
}

// warning returns the first warning of a run that has a word, or "".
func (k *take) warning(word string) string {
	for _, text := range k.Warnings {
		if strings.Contains(text, word) {
			return text
		}
	}
	return ""
}

// replacedWithWarning checks that a file that replaces AGENTS.md is in a warning.
func replacedWithWarning(t *trial) error {
	request, err := t.firstRequest(layoutTake)
	if err != nil {
		return err
	}
	if request.Count(rootMark)+request.Count(otherMark) != 1 {
		return fmt.Errorf("AGENTS.md arrived %d times, and the file in its place %d times", request.Count(rootMark), request.Count(otherMark))
	}
	for _, name := range t.target.Replaces {
		if request.Count(rootMark) == 0 && t.takes[layoutTake].warning(name) == "" {
			return fmt.Errorf("no warning names %s", name)
		}
	}
	return nil
}

// firstRequest returns the first request of a run, which may have failed after it.
func (t *trial) firstRequest(take string) (*modeltest.Request, error) {
	k, err := t.take(take)
	if len(k.requests) == 0 {
		return nil, err
	}
	return k.requests[0], nil
}

// arrivedWhole checks that a text is in the first request of a scene once, whatever its
// line ends.
func arrivedWhole(take, text string) func(*trial) error {
	return func(t *trial) error {
		request, err := t.firstRequest(take)
		if err != nil {
			return err
		}
		got := strings.ReplaceAll(strings.Join(request.Texts(), "\n"), "\r\n", "\n")
		if n := strings.Count(got, strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))); n != 1 {
			return fmt.Errorf("the file arrived whole %d times, want 1", n)
		}
		return nil
	}
}
