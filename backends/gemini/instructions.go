package gemini

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// settingsPath is the settings file of a workspace and, below the home, of the user.
const settingsPath = ".gemini/settings.json"

// contextKeys is the path of the names of context files in settings.
var contextKeys = []string{"context", "fileName"}

// privatePrefix begins the name of the context file that bus-agent delivers through the
// home. The model gets the name, so it does not change from run to run; reads has
// the files of the repository that it could find by it.
const privatePrefix = "AGENTS-"

// systemPrefix is privatePrefix for the additional system prompt.
const systemPrefix = "SYSTEM-"

// ignoreBlock hides private homes and kept sessions from agents.
var ignoreBlock = instructions.Block{
	Path: ".geminiignore", Name: "private-homes", Comment: instructions.CommentHash, Text: "/" + homeParent + "/\n",
}

// prepare makes the home of the run and lets Gemini CLI find AGENTS.md.
func prepare(_ context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	return arrange(inv, w, false, func(*settings) error { return nil })
}

// arrange prepares a run or a session without trust, in which Gemini CLI reads no file
// of the repository, not even AGENTS.md. change changes the settings of a private home.
func arrange(inv registry.Invocation, w *instructions.Workspace, distrusted bool, change func(*settings) error) (registry.Setup, error) {
	if !inv.TrustWorkspace {
		if err := refuseVariables(inv, w.Chain().Workdir, distrusted); err != nil {
			return registry.Setup{}, err
		}
	}
	if _, ownHome := agent.LookupEnv(inv.Env, homeEnv); ownHome {
		setup, err := prepareOwnHome(inv, w)
		if inv.HasInstructions() {
			setup.Prefix = "" // the session has it
		}
		return setup, err
	}
	settings, err := readSettings(inv)
	if err == nil {
		if err = change(&settings); err != nil {
			err = agent.Usagef("the user's settings cannot be used: %w", err)
		}
	}
	if err != nil {
		return registry.Setup{}, err
	}
	return privateHome.Prepare(inv, w, func(home *instructions.Home, setup *registry.Setup) error {
		if err := linkShared(inv, home, settings.names); err != nil {
			return err
		}
		if distrusted {
			_, err = deliverInMessage(inv, w.Chain(), setup, home)
		} else {
			err = deliver(inv, w, home, &settings, setup)
		}
		if err != nil {
			return err
		}
		if inv.AppendSystemPrompt != "" {
			if err := settings.addSystemPrompt(inv, w.Chain(), home); err != nil {
				return err
			}
		}
		if _, err := os.Lstat(filepath.Join(inv.Workdir, settingsPath)); err == nil && !inv.TrustWorkspace {
			setup.Warnings = append(setup.Warnings, "the repository's "+settingsPath+" is left out; use --trust-workspace to let what it names run")
		}
		return settings.write(home)
	})
}

// deliver arranges that each AGENTS.md of the chain reaches the model once.
func deliver(inv registry.Invocation, w *instructions.Workspace, home *instructions.Home, s *settings, setup *registry.Setup) error {
	chain := w.Chain()
	names := without(s.names, instructions.FileName)
	if chain.Unchecked && !inv.TrustWorkspace {
		// Context files are read in the folders below as well, by these names: the
		// repository cannot have a file of this one.
		s.names = []string{privatePrefix + rand.Text() + ".md"}
		setup.Warnings = append(setup.Warnings, "context files other than "+instructions.FileName+" are left out, the user's included; use --trust-workspace to let them count")
		_, err := deliverInMessage(inv, chain, setup, home)
		return err
	}
	repeated, linked, err := repeatedFiles(chain, names)
	if err != nil {
		return err
	}
	if len(repeated) == 0 && nativeWorks(chain) {
		s.names = append(names, instructions.FileName)
		if inv.TrustWorkspace && len(chain.Files) > 0 {
			addToWorkspace(w, names, setup)
		}
		return nil
	}
	maps.Copy(repeated, linked) // the CLI still reads these by their other names
	// Gemini CLI puts the files that it reads itself between the global context and
	// the prompt, so files above them precede the former and files below the latter.
	outer, inner := chain, chain
	outer.Files, inner.Files = nil, nil
	rest := &outer
	for _, f := range chain.Files {
		if repeated[f.Rel] {
			rest = &inner
			continue
		}
		rest.Files = append(rest.Files, f)
	}
	if inv.TrustWorkspace {
		// The repository's settings may name other context files.
		inner.Files, outer.Files = append(outer.Files, inner.Files...), nil
	}
	size, err := deliverInMessage(inv, inner, setup, home)
	if err != nil {
		return err
	}
	text, err := textOf(outer, instructions.MaxBytes-size, setup)
	if err != nil {
		return err
	}
	s.names = names
	if text == "" {
		return nil
	}
	private := privatePrefix + filepath.Base(home.Path()) + ".md"
	s.names = append(without(names, private), private)
	return home.WriteFile(".gemini/"+private, []byte(text), 0o600)
}

// addSystemPrompt delivers the additional system prompt as a global context file, which
// Gemini CLI adds to its system instruction.
func (s *settings) addSystemPrompt(inv registry.Invocation, chain instructions.Chain, home *instructions.Home) error {
	id := filepath.Base(home.Path())
	if chain.Unchecked && !inv.TrustWorkspace {
		id = rand.Text() // see deliver
	}
	name := systemPrefix + id + ".md"
	s.names = append(without(s.names, name), name)
	return home.WriteFile(".gemini/"+name, []byte(inv.AppendSystemPrompt), 0o600)
}

// textOf returns the text of the chain's files, at most limit bytes.
func textOf(chain instructions.Chain, limit int, setup *registry.Setup) (string, error) {
	if len(chain.Files) == 0 {
		return "", nil
	}
	text, warnings, err := chain.Text(max(limit, 1))
	setup.Warnings = append(setup.Warnings, warnings...)
	return text, err
}

// addToWorkspace adds AGENTS.md to the context files in the settings of a trusted
// repository. If that is refused, the user's settings remain in use.
func addToWorkspace(w *instructions.Workspace, names []string, setup *registry.Setup) {
	list := instructions.JSONList{Path: settingsPath, Keys: contextKeys, Value: instructions.FileName, Defaults: names}
	if err := w.AddToJSON(list); err != nil {
		setup.Warnings = append(setup.Warnings, fmt.Sprintf("%s was left as it is: %v", settingsPath, err))
	}
	if err := w.AddBlock(ignoreBlock); err != nil {
		setup.Warnings = append(setup.Warnings, fmt.Sprintf("%s was left as it is: %v", ignoreBlock.Path, err))
	}
}

// nativeWorks reports whether Gemini CLI's discovery reads exactly the files of the
// chain.
func nativeWorks(chain instructions.Chain) bool {
	return len(chain.Warnings) == 0 && chain.WithinLimit(instructions.MaxBytes) && gitRoot(chain.Workdir) == chain.Root
}

// gitRoot returns the directory where Gemini CLI stops searching: the nearest one with
// anything named .git, or the workdir if there is none.
func gitRoot(workdir string) string {
	for dir := workdir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return workdir
		}
	}
}

// repeatedFiles returns the AGENTS.md files, by their path from the root, that another
// context file imports or is a copy of, and those that one is a link to.
func repeatedFiles(chain instructions.Chain, names []string) (repeated, linked map[string]bool, err error) {
	// The root is the whole repository; files are only read.
	tree, err := instructions.Open(instructions.Chain{Root: chain.Root, Workdir: chain.Root}, true)
	if err != nil {
		return nil, nil, err
	}
	defer tree.Close()
	agents := map[string]string{}
	for _, f := range chain.Files {
		if body, err := tree.ReadFile(f.Rel, instructions.MaxBytes); err == nil {
			agents[f.Rel] = string(body)
		}
	}
	repeated, linked = map[string]bool{}, map[string]bool{}
	top := gitRoot(chain.Workdir)
	for _, abs := range chain.Dirs() {
		if len(abs) < len(top) {
			continue // the CLI reads nothing there
		}
		dir, err := filepath.Rel(chain.Root, abs)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			rel := path.Join(filepath.ToSlash(dir), name)
			body, err := tree.ReadFile(rel, instructions.MaxBytes)
			if err != nil {
				continue
			}
			if targets := targetsOf(chain.Root, rel, agents); len(targets) > 0 {
				maps.Copy(linked, targets)
				continue
			}
			for agentsRel, text := range agents {
				copied := text != "" && text == string(body)
				if copied || importsFile(string(body), path.Dir(rel), agentsRel) {
					repeated[agentsRel] = true
				}
			}
		}
	}
	return repeated, linked, nil
}

// targetsOf returns the AGENTS.md files that a context file is a link to. Gemini CLI reads
// a file with both names once.
func targetsOf(root, rel string, agents map[string]string) map[string]bool {
	targets := map[string]bool{}
	info, err := os.Stat(filepath.Join(root, filepath.FromSlash(rel)))
	if err != nil {
		return nil
	}
	for agentsRel := range agents {
		other, err := os.Stat(filepath.Join(root, filepath.FromSlash(agentsRel)))
		if err == nil && os.SameFile(info, other) {
			targets[agentsRel] = true
		}
	}
	return targets
}

// importsFile reports whether a context file in dir imports file: "@path" after
// space, outside of code.
func importsFile(text, dir, file string) bool {
	text = withoutCode(text)
	for word := range strings.FieldsSeq(text) {
		target, ok := strings.CutPrefix(word, "@")
		if ok && target != "" && path.Join(dir, target) == file {
			return true
		}
	}
	return false
}

// withoutCode returns text without the text between runs of backticks of the
// same length.
func withoutCode(text string) string {
	var rest strings.Builder
	for {
		i := strings.IndexByte(text, '`')
		if i < 0 {
			rest.WriteString(text)
			return rest.String()
		}
		rest.WriteString(text[:i])
		text = text[i:]
		run := len(text) - len(strings.TrimLeft(text, "`"))
		if end := strings.Index(text[run:], text[:run]); end >= 0 {
			text = text[run+end+run:]
		} else {
			rest.WriteString(text[:run])
			text = text[run:]
		}
	}
}

// without returns list without value.
func without(list []string, value string) []string {
	var rest []string
	for _, v := range list {
		if v != value {
			rest = append(rest, v)
		}
	}
	return rest
}

// notThere reports whether err says that a file is absent.
func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
