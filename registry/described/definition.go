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

// MaxBytes is the longest definition [Runtime] takes.
const MaxBytes = 64 << 10

// A Definition describes a runtime without Go code. Its JSON form is one
// object; only executables and install_url are required, and a member that is
// not listed here is an error. [Runtime] makes a runtime of it:
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

	// InstallURL says where to get it; http:// or https://.
	InstallURL string `json:"install_url"`

	// TokenEnv names the variables that can hold a credential for it.
	TokenEnv []string `json:"token_env,omitempty"`

	// Args are the arguments in order. The elements of each may hold
	//
	//	{model}        the model, when one is asked for
	//	{resume}       the ID of the session to resume, when one is
	//	{workdir}      the workdir, absolute; the agent runs in it in any case
	//	{prompt-file}  the path of a file with the prompt; a separate element or the end of one
	//	{prompt}       the prompt; a separate element after an element "--"
	//	{access}       the arguments of Access for the access in effect; a separate argument
	//
	// An argument is left out whole if a value it names is missing in the run.
	// Any other lower-case word in braces is an error, all other text is taken
	// as it is, and values are never expanded. Without {model} or {resume} the
	// runtime takes no model or resumes no session.
	//
	// Further arguments of a request go before the first element "--", or
	// at the end where there is none.
	Args []Argument `json:"args,omitempty"`

	// Prompt says how the prompt arrives: "stdin", the default, "argument" by
	// {prompt} or "file" by {prompt-file}. The file is an inherited descriptor
	// and has no name in the file system. As an argument the prompt has less
	// than 128 KiB together with the project instructions before it, which are
	// cut to fit, and other users of the machine can see it.
	Prompt string `json:"prompt,omitempty"`

	// Output says how the output is read: "text", the default, as it is, and
	// success is exit code 0; "ndjson:ID" as that of the registered runtime with
	// this ID, success and exit codes included. With "acp" the arguments start an
	// agent that speaks the Agent Client Protocol on its standard streams: the
	// runtime holds sessions and does not run once. Then neither Prompt nor
	// {prompt}, {prompt-file} or {resume} are used, and only with access full are
	// the agent's approval requests accepted without asking the user.
	Output string `json:"output,omitempty"`

	// Access holds, for each access word the runtime honours, the arguments
	// that {access} stands for; they may hold {workdir}. Without it the runtime
	// takes the default word only, and what that limits is up to its CLI.
	Access map[agent.Access][]Argument `json:"access,omitempty"`

	// Instructions says how AGENTS.md arrives: "prompt", the default, as text
	// before the prompt; "native", the CLI reads it itself; "none", not at all.
	Instructions string `json:"instructions,omitempty"`

	// SlashCommands says that the CLI takes a prompt with a leading "/" for a
	// command, so that a line break must go before it.
	SlashCommands bool `json:"slash_commands,omitempty"`

	// Executed names files whose content the CLI runs or takes settings or
	// variables from, relative to the workdir or any directory above it but the
	// user's home. If one exists, a run is refused unless the request trusts
	// the workspace.
	Executed []string `json:"executed,omitempty"`

	// Reads names further files that the CLI reads by itself, such as QWEN.md or
	// .qwen/skills/*/SKILL.md: context files, skills, ignore files. See
	// instructions.Read for the patterns. They are checked, with what they import,
	// from the root of the repository to the workdir and in the folders below it. A
	// run is refused where one of them leads out of the repository, unless the
	// request trusts the workspace, and where it is not a regular file. Those of git
	// are always checked, AGENTS.md where Instructions is "native".
	Reads []string `json:"reads,omitempty"`

	// Env holds variables to set for the agent; null removes one. Secrets do not
	// belong here: it is shown with the settings. Entries of PATH and of the search
	// paths of loaders are left out where they are relative or in the repository;
	// HOME, BASH_ENV and their like must be absolute paths.
	Env map[string]*string `json:"env,omitempty"`
}

// An Argument is one argument of a [Definition], or several that are
// used together, such as an option and its value. In JSON the former is a string,
// the latter a list of strings.
type Argument []string

// MarshalJSON returns the shorter of the two forms.
func (a Argument) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}

// UnmarshalJSON takes both forms.
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

// parseDefinition reads the JSON form. It is stricter than encoding/json:
// members are known, written exactly so, there once, and not null.
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
			return d, fmt.Errorf("member %q is there twice", name)
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

// decodeMember decodes value into target. Null counts nowhere, also where
// encoding/json skips it.
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
