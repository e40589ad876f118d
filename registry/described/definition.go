package described

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
)

// MaxBytes is the maximum length of a definition.
const MaxBytes = 64 << 10

// A Definition describes a runtime without Go code. Its JSON form is an object. Only
// executables and install_url are required; an unknown member is an error. [Runtime]
// makes a runtime of it:
//
//	{
//	  "executables": ["mine"],
//	  "install_url": "https://example.com/mine",
//	  "args": ["run", ["--model", "{model}"], "--", "{prompt}"],
//	  "prompt": "argument"
//	}
type Definition struct {
	// Name is the name that users see. Empty means the ID.
	Name string `json:"name,omitempty"`

	// Executables are tried in order; they are names, not paths.
	Executables []string `json:"executables"`

	// InstallURL is where users can get it; http:// or https://.
	InstallURL string `json:"install_url"`

	// TokenEnv names the variables that can hold a credential for it.
	TokenEnv []string `json:"token_env,omitempty"`

	// Args are the arguments in order. Their elements may contain placeholders:
	//
	//	{model}        the requested model
	//	{resume}       the ID of the session to resume
	//	{workdir}      the absolute path of the workdir, in which the agent runs
	//	{idle-timeout} the limit of Request.IdleTimeout, such as 1m30s
	//	{prompt-file}  the path of a file with the prompt, at the end of an element
	//	{prompt}       the prompt, as an element after an element "--"
	//	{access}       the arguments of Access for the access in effect, as an argument
	//
	// An argument is left out if a run has no value for one of its placeholders. Any
	// other lower-case word in braces is an error. All other text is passed on
	// unchanged, and values are not expanded again. Without {model} the runtime does
	// not support a model, without {resume} it does not resume sessions. With
	// {idle-timeout} the CLI enforces that limit, without it bus-agent does.
	//
	// Further arguments of a request are added before the first element "--", or at
	// the end.
	Args []Argument `json:"args,omitempty"`

	// Prompt is how the CLI gets the prompt:
	//
	//	stdin     through standard input; the default
	//	argument  by {prompt}. Other users of the machine can see it, and it has less
	//	          than 128 KiB with the project instructions, which are cut to fit.
	//	file      by {prompt-file}, an inherited descriptor without a name in the
	//	          file system
	Prompt string `json:"prompt,omitempty"`

	// Output is how the output is read:
	//
	//	text       the output is the answer, and exit code 0 means success; the default
	//	ndjson:ID  like the output of the registered runtime ID, including its rules for
	//	           success and exit codes
	//	acp        the CLI speaks the Agent Client Protocol on its standard streams
	//
	// With acp the runtime supports sessions and no single runs. Prompt, {prompt},
	// {prompt-file} and {resume} are not used. Approval requests are passed to the
	// user, except with access full, which accepts them.
	Output string `json:"output,omitempty"`

	// Access holds, for each access that the runtime supports, the arguments that
	// replace {access}; they may contain {workdir}. Without it the runtime supports
	// only the default access, and the CLI decides what that permits.
	Access map[agent.Access][]Argument `json:"access,omitempty"`

	// Instructions is how the CLI gets AGENTS.md: "prompt", the default, before the
	// prompt; "native", the CLI reads it itself; "none", not at all.
	Instructions string `json:"instructions,omitempty"`

	// SlashCommands is set if the CLI reads a prompt with a leading "/" as a command. A
	// line break is then put before it.
	SlashCommands bool `json:"slash_commands,omitempty"`

	// Executed names files that the CLI runs or reads settings or variables from,
	// relative to the workdir and each directory above it except the user's home. If
	// one exists, a run is refused unless the request trusts the workspace.
	Executed []string `json:"executed,omitempty"`

	// Reads are patterns of further files that the CLI reads by itself, such as QWEN.md
	// or .qwen/skills/*/SKILL.md: context files, skills, ignore files. See
	// instructions.Read. The files and their imports are checked from the root of the
	// repository to the workdir and in the folders below it. A run is refused if one is
	// not a regular file, or if one leads out of the repository and the request does
	// not trust the workspace. Files of git are always checked, AGENTS.md if
	// Instructions is "native".
	Reads []string `json:"reads,omitempty"`

	// Env holds variables to set for the agent; null removes one. Do not put secrets
	// here: the settings are shown. In PATH and the search paths of loaders, entries
	// that are relative or in the repository are left out. HOME, BASH_ENV and similar
	// variables must be absolute paths.
	Env map[string]*string `json:"env,omitempty"`
}

// An Argument is an argument of a [Definition], or several that are used together, such
// as an option and its value. In JSON, one is a string, several are a list of strings.
type Argument []string

// MarshalJSON returns the shorter of the two forms.
func (a Argument) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}

// UnmarshalJSON accepts both forms.
func (a *Argument) UnmarshalJSON(raw []byte) error {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '"' {
		var element string
		if err := json.Unmarshal(raw, &element); err != nil {
			return err
		}
		*a = Argument{element}
		return nil
	}
	var elements []*string
	if json.Unmarshal(raw, &elements) != nil || len(elements) == 0 || slices.Contains(elements, nil) {
		return errors.New("an argument is neither a string nor a list of strings")
	}
	*a = make(Argument, len(elements))
	for i, element := range elements {
		(*a)[i] = *element
	}
	return nil
}

// member is one member of a definition in JSON.
type member struct {
	name   string
	target any    // what it is decoded into
	form   string // what it has to be
}

func (d *Definition) members() []member {
	return []member{
		{"name", &d.Name, "a string"},
		{"executables", &d.Executables, "a list of strings"},
		{"install_url", &d.InstallURL, "a string"},
		{"token_env", &d.TokenEnv, "a list of strings"},
		{"args", &d.Args, "a list of strings and lists of strings"},
		{"prompt", &d.Prompt, "a string"},
		{"output", &d.Output, "a string"},
		{"access", &d.Access, "an object of lists of strings"},
		{"instructions", &d.Instructions, "a string"},
		{"slash_commands", &d.SlashCommands, "true or false"},
		{"executed", &d.Executed, "a list of strings"},
		{"reads", &d.Reads, "a list of strings"},
		{"env", &d.Env, "an object of strings and nulls"},
	}
}

// parseDefinition reads the JSON form. It is stricter than encoding/json: it refuses
// unknown and repeated members, names in another case, and null.
func parseDefinition(raw []byte) (Definition, error) {
	var d Definition
	switch {
	case len(raw) > MaxBytes:
		return d, fmt.Errorf("it has %d bytes, the limit is %d", len(raw), MaxBytes)
	case !utf8.Valid(raw):
		return d, errors.New("it is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	open, err := dec.Token()
	if err != nil {
		return d, notJSON(err)
	}
	if open != json.Delim('{') {
		return d, errors.New("it is not a JSON object")
	}
	members := d.members()
	var seen []string
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return d, notJSON(err)
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return d, notJSON(err)
		}
		i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		switch {
		case i < 0:
			return d, fmt.Errorf("unknown member %q (known: %s)", name, memberNames(members))
		case slices.Contains(seen, name):
			return d, fmt.Errorf("member %q is repeated", name)
		case !decodeMember(value, members[i].target):
			return d, fmt.Errorf("member %q is not %s", name, members[i].form)
		}
		seen = append(seen, name)
	}
	if _, err := dec.Token(); err != nil {
		return d, notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return d, errors.New("something follows the JSON object")
	}
	return d, nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("it is not JSON: %w", err)
}

func memberNames(members []member) string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	return strings.Join(names, ", ")
}

// decodeMember decodes value into target. It refuses null, which encoding/json would
// skip.
func decodeMember(value json.RawMessage, target any) bool {
	if string(value) == "null" {
		return false
	}
	switch target := target.(type) {
	case *[]string:
		var list []*string
		if json.Unmarshal(value, &list) != nil || slices.Contains(list, nil) {
			return false
		}
		for _, element := range list {
			*target = append(*target, *element)
		}
		return true
	case *map[agent.Access][]Argument:
		if json.Unmarshal(value, target) != nil {
			return false
		}
		for _, args := range *target {
			if args == nil {
				return false
			}
		}
		return uniqueKeys(value)
	case *map[string]*string:
		return json.Unmarshal(value, target) == nil && uniqueKeys(value)
	}
	return json.Unmarshal(value, target) == nil
}

// uniqueKeys reports whether an object, which is valid JSON, repeats no key.
func uniqueKeys(object json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return false
	}
	seen := make(map[string]bool)
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		if err != nil || !ok || seen[name] || dec.Decode(new(json.RawMessage)) != nil {
			return false
		}
		seen[name] = true
	}
	return true
}
