package agent

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Access is what an agent may do, the same for all runtimes.
type Access string

const (
	// AccessRead lets the agent only read.
	AccessRead Access = "read"
	// AccessWrite lets it edit inside the workdir and the added directories,
	// and run commands where the runtime can confine them. It is the default.
	AccessWrite Access = "write"
	// AccessFull sets no limits.
	AccessFull Access = "full"
)

// UserConfig says whether an agent uses the user's own configuration of its CLI.
type UserConfig string

const (
	// UserConfigOn uses it, except for its list of trusted projects: only
	// Request.TrustWorkspace trusts a repository.
	UserConfigOn UserConfig = "on"
	// UserConfigOff leaves it out. Logins are used all the same.
	UserConfigOff UserConfig = "off"
)

// ReasoningEffort is how much the model thinks.
type ReasoningEffort string

// The reasoning efforts bus-agent accepts.
const (
	EffortMinimal ReasoningEffort = "minimal"
	EffortLow     ReasoningEffort = "low"
	EffortMedium  ReasoningEffort = "medium"
	EffortHigh    ReasoningEffort = "high"
	EffortXHigh   ReasoningEffort = "xhigh"
)

// Verbosity is how much the model writes.
type Verbosity string

// The verbosities bus-agent accepts.
const (
	VerbosityLow    Verbosity = "low"
	VerbosityMedium Verbosity = "medium"
	VerbosityHigh   Verbosity = "high"
)

// OutputFormat is what a program prints during a run.
type OutputFormat string

const (
	// OutputText is the readable conversation. It is the default.
	OutputText OutputFormat = "text"
	// OutputNDJSON is the agent's raw lines.
	OutputNDJSON OutputFormat = "ndjson"
	// OutputEvents is the normalized events, one JSON object a line.
	OutputEvents OutputFormat = "events"
)

// Accesses lists the access words, least first.
func Accesses() []Access { return []Access{AccessRead, AccessWrite, AccessFull} }

// UserConfigs lists the values of UserConfig.
func UserConfigs() []UserConfig { return []UserConfig{UserConfigOn, UserConfigOff} }

// Efforts lists the reasoning efforts, least first.
func Efforts() []ReasoningEffort {
	return []ReasoningEffort{EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortXHigh}
}

// Verbosities lists the verbosities, least first.
func Verbosities() []Verbosity {
	return []Verbosity{VerbosityLow, VerbosityMedium, VerbosityHigh}
}

// OutputFormats lists the output formats.
func OutputFormats() []OutputFormat {
	return []OutputFormat{OutputText, OutputNDJSON, OutputEvents}
}

// ParseAccess returns the access named s, or an [ErrUsage] error.
func ParseAccess(s string) (Access, error) { return parseWord("access", s, Accesses()) }

// ParseUserConfig returns the value named s, or an [ErrUsage] error.
func ParseUserConfig(s string) (UserConfig, error) {
	return parseWord("user config", s, UserConfigs())
}

// ParseEffort returns the reasoning effort named s, or an [ErrUsage] error.
func ParseEffort(s string) (ReasoningEffort, error) {
	return parseWord("model reasoning effort", s, Efforts())
}

// ParseVerbosity returns the verbosity named s, or an [ErrUsage] error.
func ParseVerbosity(s string) (Verbosity, error) {
	return parseWord("model verbosity", s, Verbosities())
}

// ParseOutputFormat returns the output format named s, or an [ErrUsage] error.
func ParseOutputFormat(s string) (OutputFormat, error) {
	return parseWord("output format", s, OutputFormats())
}

// ParseModel returns s if it can be the name of a model, or an [ErrUsage] error:
// it is not blank, does not begin like a flag, and is valid UTF-8 without
// control characters. "auto" leaves the choice to the runtime.
func ParseModel(s string) (string, error) {
	switch {
	case strings.TrimSpace(s) == "":
		return "", Usagef(`model is empty; name one, or "auto" to let the runtime choose`)
	case strings.HasPrefix(s, "-"):
		return "", Usagef("model %q begins like a flag", s)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return "", Usagef("model %q has a character that is not printable", s)
	}
	return s, nil
}

func parseWord[T ~string](what, s string, words []T) (T, error) {
	if slices.Contains(words, T(s)) {
		return T(s), nil
	}
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return "", Usagef("%s %q is not one of %s", what, s, strings.Join(list, ", "))
}

// Usagef returns an error of kind [ErrUsage] with the given text.
func Usagef(format string, args ...any) error {
	return &Error{Kind: ErrUsage, Err: fmt.Errorf(format, args...)}
}

// GuardSlash returns prompt with a line break before a leading "/", so that a runtime
// with slash commands reads it as text.
func GuardSlash(prompt string) string {
	if strings.HasPrefix(strings.TrimLeft(prompt, " \t\r"), "/") {
		return "\n" + prompt
	}
	return prompt
}

// LookupEnv returns the last value of name in environ, a list of "NAME=value", and
// whether it is set.
func LookupEnv(environ []string, name string) (string, bool) {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
