// Package described makes runtimes from definitions, in JSON for users who want to add a
// CLI without writing Go, and in Go for programs with many runtimes: see [Definition].
package described

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

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

// neededEnv are variables that every program needs.
var neededEnv = []string{"PATH", "HOME", "TMPDIR"}

// runVariable tags the processes of a run, so that none is left behind.
const runVariable = "BUS_AGENT_RUN"

// Runtime returns the runtime with this ID that a [Definition] in JSON describes.
// known holds the runtimes whose output format the definition may name, and whose
// IDs are taken, except those of a Runtime.LastChoice: a catalogue that grows does not
// break what the user described. nil means none. The runtime is not registered, but can
// be.
//
// The error is of kind agent.ErrUsage. It says what is wrong with the ID or where in
// the definition, and shows no value of a variable.
func Runtime(id string, definition []byte, known *registry.Registry) (registry.Runtime, error) {
	return checked(id, known, func() (Definition, error) { return parseDefinition(definition) })
}

// New returns the runtime with this ID that d describes, for definitions in Go. It is
// like [Runtime] otherwise. What d refers to must not be changed any more. The caller can
// set what a definition does not have, such as the decoder of another output format,
// before it registers the runtime.
func New(id string, d Definition, known *registry.Registry) (registry.Runtime, error) {
	return checked(id, known, func() (Definition, error) { return d, nil })
}

func checked(id string, known *registry.Registry, definition func() (Definition, error)) (rt registry.Runtime, err error) {
	if known == nil {
		known = new(registry.Registry)
	}
	if !registry.ValidID(id) {
		return rt, agent.Usagef("runtime %q: the ID must match [a-z][a-z0-9-]*", id)
	}
	if taken, ok := known.Lookup(id); ok && !taken.LastChoice {
		return rt, agent.Usagef("runtime %q is built in; choose another ID", id)
	}
	d, err := definition()
	if err == nil {
		rt, err = d.runtime(id, known)
	}
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

// runtime checks d and returns the runtime.
func (d Definition) runtime(id string, known *registry.Registry) (rt registry.Runtime, err error) {
	if d.Name == "" {
		d.Name = id
	}
	for _, check := range []func() error{d.checkWords, d.checkNames, d.checkFailures} {
		if err := check(); err != nil {
			return rt, err
		}
	}
	rt = registry.Runtime{
		ID:            id,
		Name:          d.Name,
		Executables:   d.Executables,
		InstallURL:    d.InstallURL,
		TokenEnv:      d.TokenEnv,
		Reads:         d.reads,
		Executed:      d.Executed,
		Instructions:  d.instructions(id),
		AnswerFailure: d.answerFailure(),
	}
	if d.Home != nil {
		rt.Home = d.Home.user()
		rt.UserConfig.Modes = []agent.UserConfig{agent.UserConfigOff}
		rt.Protected = []string{"." + id}
	}
	if d.Prompt == promptByArgument {
		rt.PromptLimit = registry.Limit{Bytes: maxArgument - 1} // a line break may go before it
	}
	if err := d.readAs(&rt, known); err != nil {
		return rt, err
	}
	rt.ExitFailure = d.exitFailure(rt.ExitFailure)
	if d.Output != outputACP {
		if rt.Run, err = d.use(id); err != nil {
			return rt, err
		}
	}
	if d.ACP != nil || d.Output == outputACP {
		if rt.Session, err = d.sessions(id); err != nil {
			return rt, err
		}
	}
	return rt, rt.Check()
}

// use checks what concerns one use of d and returns it.
func (d *Definition) use(id string) (registry.Use, error) {
	for _, check := range []func() error{d.checkArgs, d.checkSettings, d.checkHome} {
		if err := check(); err != nil {
			return registry.Use{}, err
		}
	}
	return registry.Use{
		Options: registry.Options{
			Model:       d.has(holdModel),
			Efforts:     words(agent.Efforts(), d.Efforts),
			Resume:      d.has(holdResume),
			Continue:    d.has(holdContinue),
			Access:      d.accesses(),
			IdleTimeout: d.has(holdIdleTimeout),

			MCPServers:         d.has(holdMCPFile) || d.session,
			AllowTools:         d.has(holdAllowTools),
			DenyTools:          d.has(holdDenyTools),
			AppendSystemPrompt: d.has(holdSystem) || d.session && d.ACP.takesSystemPrompt(),
		},
		SlashCommands: d.SlashCommands,
		Check:         d.check,
		Prepare: func(_ context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
			return d.prepare(id, inv, w)
		},
		Command: d.command,
	}, nil
}

// accesses returns the access words of d, least first.
func (d *Definition) accesses() []agent.Access {
	if len(d.Access) == 0 {
		return []agent.Access{agent.AccessWrite}
	}
	return words(agent.Accesses(), d.Access)
}

// words returns those of all for which there is a setting.
func words[W comparable](all []W, settings map[W]Setting) []W {
	if len(settings) == 0 {
		return nil
	}
	return slices.DeleteFunc(all, func(word W) bool {
		_, ok := settings[word]
		return !ok
	})
}

// settings returns what is set for inv.
func (d *Definition) settings(inv registry.Invocation) []Setting {
	return []Setting{d.Access[inv.Access], d.Efforts[inv.ReasoningEffort]}
}

// A label names a setting, as in access.read.
type label struct{ member, word string }

func (l label) String() string { return l.member + "." + l.word }

// allSettings returns every setting of d, in order.
func (d *Definition) allSettings() iter.Seq2[label, Setting] {
	access, efforts := "access", "efforts"
	if d.session {
		access, efforts = "acp.access", "acp.efforts"
	}
	return func(yield func(label, Setting) bool) {
		for _, word := range agent.Accesses() {
			if s, ok := d.Access[word]; ok && !yield(label{access, string(word)}, s) {
				return
			}
		}
		for _, word := range agent.Efforts() {
			if s, ok := d.Efforts[word]; ok && !yield(label{efforts, string(word)}, s) {
				return
			}
		}
	}
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
	if d.has(holdMCPFile) && len(inv.MCPServers) > 0 && inv.Home == "" {
		command.Files = append(command.Files, agent.MCPConfig(inv.MCPServers))
	}
	command.Env = d.environ(inv)
	return command, nil
}

// environ returns the variables of one start.
func (d *Definition) environ(inv registry.Invocation) (env []string) {
	all := maps.Clone(d.Env)
	for _, s := range d.settings(inv) {
		if all == nil {
			all = map[string]*string{}
		}
		maps.Copy(all, s.Env)
	}
	for name, value := range all {
		if value != nil {
			text := *value
			if d.Home != nil {
				text = strings.ReplaceAll(text, holdHome, inv.Home)
			}
			name += "=" + text
		}
		env = append(env, name)
	}
	slices.Sort(env)
	return env
}

func joinWords[W ~string](words []W) string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = string(word)
	}
	return strings.Join(list, ", ")
}
