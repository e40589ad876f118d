package described

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/busdk/bus-agent/agent"
)

// MaxBytes is the maximum length of a definition.
const MaxBytes = 64 << 10

// A Definition describes a runtime without Go code: how it runs once, and with ACP how it
// holds sessions. Its JSON form is an object. Only executables and install_url are
// required; an unknown member is an error, in the objects in it too. [Runtime] makes a
// runtime of the JSON form, [New] of a Definition:
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
	//	{effort}       those of Efforts for the requested effort, as an argument
	//	{continue}     those of Continue, as an argument
	//	{home}         the absolute path of the home, with Home
	//	{mcp-file}     the path of a file with the MCP servers, see agent.MCPConfig
	//	{system-prompt} the text of Request.AppendSystemPrompt
	//	{allow-tools}  the names of Request.AllowTools, separated by commas
	//	{deny-tools}   those of Request.DenyTools
	//
	// An argument is left out if a run has no value for one of its placeholders. Any
	// other lower-case word in braces is an error. All other text is passed on
	// unchanged, and values are not expanded again. Without {model} the runtime does
	// not support a model, without {resume} it does not resume runs, without
	// {system-prompt} it takes no additional system prompt, without {mcp-file} no MCP
	// servers in runs, and without {allow-tools} and {deny-tools} no such list; see
	// registry.Options for what the CLI must do with it. With
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
	//	acp        the runtime has sessions only, see ACP; Args are those of ACP
	Output string `json:"output,omitempty"`

	// Access holds what to set for each access that the runtime supports. Without it the
	// runtime supports only the default access, and the CLI decides what that permits.
	Access map[agent.Access]Setting `json:"access,omitempty"`

	// Efforts holds what to set for each reasoning effort that the runtime supports.
	Efforts map[agent.ReasoningEffort]Setting `json:"efforts,omitempty"`

	// Continue are the arguments that replace {continue} in a run that continues the
	// latest session of the workdir. They may contain {workdir} and {home}.
	Continue []Argument `json:"continue,omitempty"`

	// ACP describes sessions; nil means that the runtime has none. All other members but
	// Args, Prompt, Output and Continue are for both.
	ACP *ACP `json:"acp,omitempty"`

	// Failures are classified failures, the first that shows counts. Those that the
	// output itself classifies come before them.
	Failures []Failure `json:"failures,omitempty"`

	// SilenceFails says that a run without text and tool calls has failed, even if the CLI
	// reports a success, and a turn of a session without text, tool calls and tokens.
	SilenceFails bool `json:"silence_fails,omitempty"`

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

	// Home describes a private home for each start; nil means that the CLI uses the
	// user's.
	//
	// If the caller sets Home.Env, the CLI uses that folder, which needs access full.
	Home *Home `json:"home,omitempty"`

	// Env holds variables to set for the agent; null removes one. Do not put secrets
	// here: the settings are shown. In PATH and the search paths of loaders, entries
	// that are relative or in the repository are left out. HOME, BASH_ENV and similar
	// variables must be absolute paths. With Home, {home} in a value is replaced.
	Env map[string]*string `json:"env,omitempty"`

	session bool // describes the sessions of another definition, see forSessions
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
