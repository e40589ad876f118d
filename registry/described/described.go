// Package described makes runtimes from definitions in JSON, for users who want to
// add a CLI without writing Go: see [Definition].
package described

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// The words of a definition's members.
const (
	promptByStdin    = "stdin"
	promptByArgument = "argument"
	promptByFile     = "file"

	outputText   = "text"
	outputACP    = "acp"
	outputNDJSON = "ndjson:"

	instructionsInPrompt = "prompt"
	instructionsNative   = "native"
	instructionsNone     = "none"
)

// maxArgument is the longest single argument Linux starts a program with, in
// bytes: 128 KiB with the NUL at its end.
const maxArgument = 128<<10 - 1

// maxName bounds the name of a runtime, in bytes: it is a column of tables.
const maxName = 64

// startupFiles are variables that name a file or folder with what programs run when
// they start. Those with lists, such as PATH and LD_PRELOAD, the runner cleans.
var startupFiles = []string{"HOME", "BASH_ENV", "ENV", "ZDOTDIR", "XDG_CONFIG_HOME", "PYTHONSTARTUP", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"}

// runVariable tags the processes of a run, so that none is left behind.
const runVariable = "BUS_AGENT_RUN"

// Runtime returns the runtime with this ID that a [Definition] in JSON describes.
// known holds the runtimes whose output format the definition may name, and whose
// IDs are taken; nil means none. The runtime is not registered, but can be.
//
// The error is of kind agent.ErrUsage. It says what is wrong with the ID or where in
// the definition, and shows no value of a variable.
func Runtime(id string, definition []byte, known *registry.Registry) (registry.Runtime, error) {
	if known == nil {
		known = new(registry.Registry)
	}
	if !registry.ValidID(id) {
		return registry.Runtime{}, agent.Usagef("runtime %q: the ID must match [a-z][a-z0-9-]*", id)
	}
	if _, ok := known.Lookup(id); ok {
		return registry.Runtime{}, agent.Usagef("runtime %q is built in; choose another ID", id)
	}
	rt, err := newRuntime(id, definition, known)
	if err != nil {
		return registry.Runtime{}, agent.Usagef("definition of runtime %s: %s", id, shortened(err.Error()))
	}
	return rt, nil
}

// shortened returns a text that can quote much of a definition as one line to read.
func shortened(text string) string {
	const limit = 400
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit*3/4]+" ... "+text[len(text)-limit/4:], "")
}

func newRuntime(id string, definition []byte, known *registry.Registry) (registry.Runtime, error) {
	d, err := parseDefinition(definition)
	if err != nil {
		return registry.Runtime{}, err
	}
	if d.Name == "" {
		d.Name = id
	}
	for _, check := range []func() error{d.checkWords, d.checkNames, d.checkArgs, d.checkAccess} {
		if err := check(); err != nil {
			return registry.Runtime{}, err
		}
	}
	rt := registry.Runtime{
		ID:          id,
		Name:        d.Name,
		Executables: d.Executables,
		InstallURL:  d.InstallURL,
		TokenEnv:    d.TokenEnv,
		Run: registry.Use{
			Options: registry.Options{
				Model:       d.has(holdModel),
				Resume:      d.has(holdResume),
				Access:      d.accesses(),
				IdleTimeout: d.has(holdIdleTimeout),
			},
			SlashCommands: d.SlashCommands,
			Check:         d.check,
			Prepare:       d.prepare,
			Command:       d.command,
		},
		Reads:        d.reads,
		Instructions: d.instructions(),
	}
	if d.Prompt == promptByArgument {
		rt.PromptLimit = registry.Limit{Bytes: maxArgument - 1} // a line break may go before it
	}
	if err := d.readAs(&rt, known); err != nil {
		return registry.Runtime{}, err
	}
	if d.Output == outputACP {
		if err := d.converse(&rt); err != nil {
			return registry.Runtime{}, err
		}
	}
	return rt, rt.Check()
}

// checkWords fills in the defaults of the members that are one of several words.
func (d *Definition) checkWords() error {
	for _, m := range []struct {
		name  string
		value *string
		words []string
	}{
		{"prompt", &d.Prompt, []string{promptByStdin, promptByArgument, promptByFile}},
		{"instructions", &d.Instructions, []string{instructionsInPrompt, instructionsNative, instructionsNone}},
	} {
		if *m.value == "" {
			*m.value = m.words[0]
		}
		if !slices.Contains(m.words, *m.value) {
			return fmt.Errorf("%s: %q is not one of %s", m.name, *m.value, strings.Join(m.words, ", "))
		}
	}
	return nil
}

// checkNames checks the names that users see and those of executables.
func (d *Definition) checkNames() error {
	if !printable(d.Name) || len(d.Name) > maxName {
		return fmt.Errorf("name: %q has a character that is not printable, or more than %d bytes", d.Name, maxName)
	}
	if len(d.Executables) == 0 {
		return errors.New(`"executables" is missing: a list of the names of its program`)
	}
	for i, name := range d.Executables {
		if name == "" || name == "." || name == ".." || !printable(name) || strings.ContainsAny(name, `/\`) {
			return fmt.Errorf("executables[%d]: %q must be a plain name, which is looked for in PATH", i, name)
		}
	}
	if d.InstallURL == "" {
		return errors.New(`"install_url" is missing: the address that says where to get it`)
	}
	if !isWebAddress(d.InstallURL) {
		return fmt.Errorf("install_url: %q is not an address that begins with https:// or http://", d.InstallURL)
	}
	for i, name := range d.TokenEnv {
		if !isVariable(name) {
			return fmt.Errorf("token_env[%d]: %q is not the name of a variable", i, name)
		}
		if slices.Contains([]string{"PATH", "HOME", "TMPDIR"}, name) {
			return fmt.Errorf("token_env[%d]: %s is needed by every program and holds no credential", i, name)
		}
	}
	for i, name := range d.Executed {
		if name == "." || path.Clean(name) != name || !filepath.IsLocal(name) || !printable(name) || strings.Contains(name, `\`) {
			return fmt.Errorf("executed[%d]: %q is not a path below a directory, such as .mine/hooks.json", i, name)
		}
	}
	for i, name := range d.Reads {
		if err := (instructions.Read{Name: name}).Check(); err != nil || !printable(name) {
			return fmt.Errorf("reads[%d]: %q is not a path below a folder, such as .mine/skills/*/SKILL.md", i, name)
		}
	}
	for name, value := range d.Env {
		switch {
		case !isVariable(name):
			return fmt.Errorf("env: %q is not the name of a variable", name)
		case name == runVariable:
			return fmt.Errorf("env: %s is how a run finds its processes again", name)
		case value != nil && strings.ContainsRune(*value, 0):
			return fmt.Errorf("env: the value of %s has a NUL character", name)
		case value != nil && *value != "" && !filepath.IsAbs(*value) && slices.Contains(startupFiles, name):
			return fmt.Errorf("env: the value of %s must be an absolute path: the agent runs in the repository, which would decide what a relative one leads to", name)
		}
	}
	return nil
}

func (d *Definition) checkAccess() error {
	for word, args := range d.Access {
		if _, err := agent.ParseAccess(string(word)); err != nil {
			return err
		}
		for i, a := range args {
			if err := checkArgument(a, []string{holdWorkdir}); err != nil {
				return fmt.Errorf("access.%s[%d]: %w", word, i, err)
			}
			if slices.Contains(a, endOfOptions) {
				return fmt.Errorf(`access.%s[%d]: "--" would end the options`, word, i)
			}
		}
	}
	return nil
}

// printable reports whether s is safe to print.
func printable(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}

func isWebAddress(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	return ok && rest != "" && rest[0] != '/' && strings.IndexFunc(s, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}

func isVariable(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// accesses returns the access words of d, least first.
func (d *Definition) accesses() []agent.Access {
	if len(d.Access) == 0 {
		return []agent.Access{agent.AccessWrite}
	}
	return slices.DeleteFunc(agent.Accesses(), func(word agent.Access) bool {
		_, ok := d.Access[word]
		return !ok
	})
}

// readAs lets the output be read as the definition says.
func (d *Definition) readAs(rt *registry.Runtime, known *registry.Registry) error {
	switch id, ndjson := strings.CutPrefix(d.Output, outputNDJSON); {
	case d.Output == "" || d.Output == outputText || d.Output == outputACP:
		rt.Decoder = formatters.Generic
	case ndjson:
		other, ok := known.Lookup(id)
		if reason := known.Refused(id); !ok && reason != nil {
			return fmt.Errorf("output: %q cannot be used: %w", d.Output, reason)
		}
		if !ok {
			return fmt.Errorf("output: %q names no runtime that is built in", d.Output)
		}
		rt.Decoder, rt.Formatter = other.Decoder, other.Formatter
		rt.ReportsResult, rt.ExitFailure = other.ReportsResult, other.ExitFailure
		rt.TokenOnly = other.TokenOnly
	default:
		return fmt.Errorf("output: %q is neither %q nor %q nor %q", d.Output, outputText, outputNDJSON+"ID", outputACP)
	}
	return nil
}

// check returns what the CLI cannot be asked for.
func (d *Definition) check(inv registry.Invocation) error {
	if words := d.accesses(); !slices.Contains(words, inv.Access) {
		return agent.Usagef("%s knows no access %q; ask for one of %s; nothing was started", d.Name, inv.Access, joinWords(words))
	}
	if d.Prompt == promptByArgument && strings.ContainsRune(inv.Prompt, 0) {
		return agent.Usagef("the prompt has a NUL character, which no argument can have; nothing was started")
	}
	return d.checkValues(&inv)
}

// command builds the argument list.
func (d *Definition) command(inv registry.Invocation) (agent.Command, error) {
	command := agent.Command{Args: d.argv(&inv)}
	switch {
	case d.Prompt == promptByStdin:
		command.Stdin = inv.Prompt
	case d.Prompt == promptByFile:
		command.Files = [][]byte{[]byte(inv.Prompt)}
	case len(inv.Prompt) > maxArgument:
		return agent.Command{}, agent.Usagef("the prompt and what goes before it have %d bytes, the limit of an argument is %d; nothing was started", len(inv.Prompt), maxArgument)
	}
	for name, value := range d.Env {
		if value != nil {
			name += "=" + *value
		}
		command.Env = append(command.Env, name)
	}
	slices.Sort(command.Env)
	return command, nil
}

func joinWords(words []agent.Access) string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = string(word)
	}
	return strings.Join(list, ", ")
}

// reads returns what the CLI reads by itself.
func (d *Definition) reads(registry.Invocation) []instructions.Read {
	reads := instructions.Reads(instructions.Everywhere, d.Reads...)
	if d.Instructions == instructionsNative {
		reads = append(reads, instructions.Reads(instructions.Everywhere, instructions.FileName)...)
	}
	for i := range reads {
		reads[i].Imports = true
	}
	return reads
}

// instructions returns how AGENTS.md is delivered; nil where it is not.
func (d *Definition) instructions() *registry.Instructions {
	if d.Instructions == instructionsNone {
		return nil
	}
	return &registry.Instructions{MaxBytes: instructions.MaxBytes}
}

// prepare puts AGENTS.md before the prompt, or leaves it to the CLI. Nothing is
// written.
func (d *Definition) prepare(_ context.Context, inv registry.Invocation, w *instructions.Workspace) (setup registry.Setup, err error) {
	chain := w.Chain()
	if !inv.TrustWorkspace {
		if file := d.executed(inv, chain); file != "" {
			return setup, agent.Usagef("%s would run what %s names, and has no option against it; "+
				"nothing was started; use --trust-workspace to let it, or remove the file", d.Name, file)
		}
	}
	switch {
	case d.Instructions == instructionsInPrompt:
		err = d.prefix(&setup, inv, chain)
	case d.Instructions == instructionsNative && !chain.WithinLimit(instructions.MaxBytes):
		setup.Warnings = []string{fmt.Sprintf("the %s files have %d bytes; %s reads them itself and may leave out a part", instructions.FileName, chain.Size(), d.Name)}
	}
	return setup, err
}

// prefix sets the text that goes before the prompt.
func (d *Definition) prefix(setup *registry.Setup, inv registry.Invocation, chain instructions.Chain) error {
	if len(chain.Files) == 0 || d.Output == outputACP && inv.Resume != "" { // which has it already
		return nil
	}
	room := instructions.MaxBytes
	if d.Prompt == promptByArgument {
		room = min(room, maxArgument-len(instructions.EndOfText)-len(inv.Prompt))
	}
	fits := room > 0 && chain.WithinLimit(room)
	switch {
	case !fits && inv.RequireInstructions:
		return agent.Usagef("%s is %d bytes and does not fit before the prompt, but it is required whole; nothing was started", instructions.FileName, chain.Size())
	case room <= 0:
		setup.Warnings = append(setup.Warnings, fmt.Sprintf("the prompt leaves no room for %s; it is left out", instructions.FileName))
		return nil
	}
	return setup.PrependInstructions(chain, room)
}

// executed returns the path of a file that the CLI runs, in the workdir or above it,
// relative to the root where it is below; "" where there is none. The home of the user
// holds what is the user's.
func (d *Definition) executed(inv registry.Invocation, chain instructions.Chain) string {
	for dir := chain.Workdir; ; dir = filepath.Dir(dir) {
		if name := d.executedIn(dir); name != "" && !inv.IsHome(registry.Home{}, dir) {
			file := filepath.Join(dir, name)
			if rel, err := filepath.Rel(chain.Root, file); err == nil && filepath.IsLocal(rel) {
				return rel
			}
			return file
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// executedIn returns the name of a file in dir that the CLI runs.
func (d *Definition) executedIn(dir string) string {
	for _, name := range d.Executed {
		name = filepath.FromSlash(name)
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return name
		}
	}
	return ""
}
