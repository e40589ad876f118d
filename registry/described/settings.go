package described

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// A Setting is what a [Definition] sets for an access or an effort. In JSON it is an
// object, or the list of its arguments if it has nothing else.
type Setting struct {
	// Args replace {access} or {effort}. They may contain {workdir} and {home}.
	Args []Argument `json:"args,omitempty"`

	// Env holds variables, as Definition.Env, which they override.
	Env map[string]*string `json:"env,omitempty"`

	// Files are files of the private home, as Home.Files, which they replace.
	Files map[string]string `json:"files,omitempty"`

	// Mode, for an access in sessions, is the agent's ID of a mode, or the value of its
	// option with the category mode. If it is empty, the agent stays in its current mode.
	Mode string `json:"mode,omitempty"`

	// AcceptEdits, for an access in sessions, accepts edits of files in the workdir and the
	// added directories without asking the user.
	AcceptEdits bool `json:"accept_edits,omitempty"`

	// Option, for an effort in sessions, is the value of the agent's option with the
	// category thought_level. If it is empty, the effort itself is that value.
	Option string `json:"option,omitempty"`
}

// An ACP describes sessions of an agent that speaks the Agent Client Protocol on its
// standard streams. Approval requests are passed to the user, except with access full,
// which accepts them.
type ACP struct {
	// Args start the agent. They may contain {model}, {workdir}, {home}, {access},
	// {effort} and {system-prompt}; see [Definition].
	Args []Argument `json:"args,omitempty"`

	// Access and Efforts replace those of the definition if they are not nil.
	Access  map[agent.Access]Setting          `json:"access,omitempty"`
	Efforts map[agent.ReasoningEffort]Setting `json:"efforts,omitempty"`

	// Authenticate is the ID of the login method that is requested before a session is
	// opened. Empty requests none.
	Authenticate string `json:"authenticate,omitempty"`

	// Models is set if the agent gets its model by the protocol. A session with a model
	// is not opened if the agent offers none. If it is not set, {model} has the model.
	Models bool `json:"models,omitempty"`

	// Meta is the member _meta of the requests that begin or load a session, for settings
	// that only this agent knows. A string that is "{system-prompt}" stands for the text of
	// Request.AppendSystemPrompt; without a text the member with it is left out.
	Meta map[string]json.RawMessage `json:"meta,omitempty"`
}

// A Failure describes how a kind of failure shows.
type Failure struct {
	// Kind is the class of the failure. Empty, for Answers, means an unknown one.
	Kind agent.Failure `json:"kind,omitempty"`

	// ExitCodes are exit codes that mean it.
	ExitCodes []int `json:"exit_codes,omitempty"`

	// Contains are texts, in any case of ASCII letters, that occur in the agent's reason
	// of a failure, in the last lines of its standard error, or in an error of the Agent
	// Client Protocol, which ends in its code in parentheses.
	Contains []string `json:"contains,omitempty"`

	// Answers are beginnings of answers that the CLI gives instead of the model. A run or
	// turn with such an answer has failed, even if the CLI reports a success.
	Answers []string `json:"answers,omitempty"`
}

// A Home describes a private folder for the settings, logins and sessions of the CLI: a
// new one below .ID/bus in the workdir for each start, removed at its end.
type Home struct {
	// Env names the variable that moves the folder. It may be empty if {home} is used.
	Env string `json:"env,omitempty"`

	// Folder is the user's folder below HOME, slash-separated, if Env is not set.
	Folder string `json:"folder,omitempty"`

	// Logins are the files of the user's folder that the new one has links to.
	Logins []string `json:"logins,omitempty"`

	// Files are the contents of further files by name.
	Files map[string]string `json:"files,omitempty"`

	// Sessions are patterns of path.Match, all below one folder, for the files and
	// folders that are kept for resuming a session. To resume one, the newest file is
	// copied whose name contains the ID with no letter or digit next to it. Without Env
	// they can be left out: the CLI then keeps its sessions in its own folder.
	Sessions []string `json:"sessions,omitempty"`
}

// checkSettings returns what is wrong with the settings of d.
func (d *Definition) checkSettings() error {
	for word := range d.Access {
		if _, err := agent.ParseAccess(string(word)); err != nil {
			return fmt.Errorf("access: %w", err)
		}
	}
	for word := range d.Efforts {
		if _, err := agent.ParseEffort(string(word)); err != nil {
			return fmt.Errorf("efforts: %w", err)
		}
	}
	for what, s := range d.allSettings() {
		if err := d.checkArguments(s.Args); err != nil {
			return fmt.Errorf("%s%w", what, err)
		}
		if err := checkEnv(s.Env); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if effort := strings.HasSuffix(what.member, "efforts"); effort && (s.Mode != "" || s.AcceptEdits) || !effort && s.Option != "" {
			return fmt.Errorf("%s: mode and accept_edits are for an access, option is for an effort", what)
		}
	}
	for word, access := range d.Access {
		for _, effort := range d.Efforts {
			if name, ok := sharedKey(access.Env, effort.Env); ok {
				return fmt.Errorf("access.%s: the variable %s is also set by an effort, which would override it", word, name)
			}
			if name, ok := sharedKey(access.Files, effort.Files); ok {
				return fmt.Errorf("access.%s: the file %s is also one of an effort, which would replace it", word, name)
			}
		}
	}
	if err := d.checkArguments(d.Continue); err != nil {
		return fmt.Errorf("continue%w", err)
	}
	return nil
}

func sharedKey[V any](a, b map[string]V) (string, bool) {
	for key := range a {
		if _, ok := b[key]; ok {
			return key, true
		}
	}
	return "", false
}

// checkArguments returns what is wrong with arguments that replace a placeholder.
func (d *Definition) checkArguments(args []Argument) error {
	allowed := ofSettings
	if d.Home == nil {
		allowed = allowed[:1]
	}
	for i, a := range args {
		err := checkArgument(a, allowed)
		if err == nil && slices.Contains(a, endOfOptions) {
			err = errors.New(`"--" would end the options`)
		}
		if err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}
