package described

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// The placeholders of a definition's arguments.
const (
	holdModel       = "{model}"
	holdResume      = "{resume}"
	holdWorkdir     = "{workdir}"
	holdIdleTimeout = "{idle-timeout}"
	holdPromptFile  = "{prompt-file}"
	holdPrompt      = "{prompt}"
	holdAccess      = "{access}"
	holdEffort      = "{effort}"
	holdContinue    = "{continue}"
	holdHome        = "{home}"
	holdSystem      = "{system-prompt}"
	holdMCPFile     = "{mcp-file}"
	holdAllowTools  = "{allow-tools}"
	holdDenyTools   = "{deny-tools}"
)

// placeholders are those of the arguments of a run, ofSessions those of sessions, and
// ofSettings those of settings, of which the last needs a home.
var (
	placeholders = []string{holdModel, holdResume, holdWorkdir, holdIdleTimeout, holdPromptFile, holdPrompt, holdAccess, holdEffort, holdContinue, holdHome, holdSystem, holdMCPFile, holdAllowTools, holdDenyTools}
	ofSessions   = []string{holdModel, holdWorkdir, holdAccess, holdEffort, holdHome, holdSystem, holdMCPFile, holdAllowTools, holdDenyTools}
	ofSettings   = []string{holdWorkdir, holdHome}
)

// isList reports whether a placeholder stands for arguments.
func isList(hold string) bool {
	return hold == holdAccess || hold == holdEffort || hold == holdContinue
}

// endOfOptions is the argument after which none is an option.
const endOfOptions = "--"

// promptFile is where the agent reads the first of Setup.Files.
const promptFile = "/dev/fd/3"

// mcpName is the file with the MCP servers in a home.
const mcpName = "mcp-servers.json"

// mcpFile returns where the agent reads the MCP servers: in its home if it has one, because
// some programs start others that do not inherit descriptors. It is "" without servers.
func (d *Definition) mcpFile(inv *registry.Invocation) string {
	switch {
	case len(inv.MCPServers) == 0:
		return ""
	case inv.Home != "":
		return filepath.Join(inv.Home, mcpName)
	case d.Prompt == promptByFile:
		return "/dev/fd/4"
	}
	return "/dev/fd/3"
}

// cutPlaceholder cuts s around its first placeholder or what looks like one: a
// lower-case word in braces.
func cutPlaceholder(s string) (before, hold, after string) {
	for start := range len(s) {
		if s[start] != '{' {
			continue
		}
		rest := strings.TrimLeft(s[start+1:], "abcdefghijklmnopqrstuvwxyz-")
		end := len(s) - len(rest)
		if end > start+1 && strings.HasPrefix(rest, "}") {
			return s[:start], s[start : end+1], s[end+1:]
		}
	}
	return s, "", ""
}

// holds returns the placeholders of an argument in order.
func (a Argument) holds() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, element := range a {
			for _, hold, rest := cutPlaceholder(element); hold != ""; _, hold, rest = cutPlaceholder(rest) {
				if !yield(hold) {
					return
				}
			}
		}
	}
}

// has reports whether a has the placeholder.
func (a Argument) has(hold string) bool {
	for h := range a.holds() {
		if h == hold {
			return true
		}
	}
	return false
}

// expand appends the elements of a with the values of its placeholders, or
// nothing when one of them has none.
func (a Argument) expand(dst []string, value func(hold string) string) []string {
	for hold := range a.holds() {
		if value(hold) == "" {
			return dst
		}
	}
	for _, element := range a {
		var b strings.Builder
		before, hold, rest := cutPlaceholder(element)
		for ; hold != ""; before, hold, rest = cutPlaceholder(rest) {
			b.WriteString(before + value(hold))
		}
		b.WriteString(before)
		dst = append(dst, b.String())
	}
	return dst
}

// checkArgument returns what is wrong with one argument of args; allowed are the
// placeholders it may have.
func checkArgument(a Argument, allowed []string) error {
	for _, element := range a {
		if strings.ContainsRune(element, 0) {
			return fmt.Errorf("%q has a NUL character", element)
		}
	}
	for hold := range a.holds() {
		if !slices.Contains(allowed, hold) {
			return fmt.Errorf("unknown placeholder %s (known here: %s)", hold, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// checkArgs returns what is wrong with the arguments of d.
func (d *Definition) checkArgs() error {
	counts := map[string]int{}
	afterOptions, allowed, name := false, placeholders, "args"
	if d.session {
		allowed = ofSessions
		if d.ACP.Args != nil || d.Output != outputACP {
			name = "acp.args"
		}
	}
	for i, a := range d.Args {
		if err := checkArgument(a, allowed); err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		for hold := range a.holds() {
			counts[hold]++
		}
		for _, element := range a {
			var hold string // of arguments
			for h := range a.holds() {
				if isList(h) {
					hold = h
				}
			}
			switch {
			case element == endOfOptions && len(a) > 1:
				return fmt.Errorf(`%s[%d]: "--" must be a separate argument`, name, i)
			case element == endOfOptions:
				afterOptions = true
			case strings.Contains(element, holdPrompt) && (len(a) > 1 || element != holdPrompt || !afterOptions):
				return fmt.Errorf(`%s[%d]: %s must be a separate argument after "--", so that no prompt is taken for an option`, name, i, holdPrompt)
			case strings.Contains(element, holdPromptFile) && !strings.HasSuffix(element, holdPromptFile):
				return fmt.Errorf("%s[%d]: %s must be the end of an element", name, i, holdPromptFile)
			case hold != "" && (len(a) > 1 || element != hold || afterOptions):
				return fmt.Errorf(`%s[%d]: %s must be a separate argument, before "--"`, name, i, hold)
			}
		}
	}
	if err := d.checkCounts(counts); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkCounts returns which placeholder the arguments lack, have too often, or
// have although no other member speaks of it.
func (d *Definition) checkCounts(counts map[string]int) error {
	for _, rule := range []struct {
		hold            string
		needed, allowed bool
		member          string
	}{
		{holdPrompt, d.Prompt == promptByArgument, d.Prompt == promptByArgument, `"prompt": "` + promptByArgument + `"`},
		{holdPromptFile, d.Prompt == promptByFile, d.Prompt == promptByFile, `"prompt": "` + promptByFile + `"`},
		{holdAccess, needsArguments(d, d.Access), len(d.Access) > 0, `"access"`},
		{holdEffort, needsArguments(d, d.Efforts), len(d.Efforts) > 0, `"efforts"`},
		{holdContinue, len(d.Continue) > 0 && !d.session, len(d.Continue) > 0, `"continue"`},
		{holdHome, false, d.Home != nil, `"home"`},
	} {
		switch n := counts[rule.hold]; {
		case n > 1 && rule.hold != holdHome:
			return fmt.Errorf("%s occurs %d times", rule.hold, n)
		case n == 0 && rule.needed:
			return fmt.Errorf("%s needs %s", rule.member, rule.hold)
		case n > 0 && !rule.allowed:
			return fmt.Errorf("%s needs %s", rule.hold, rule.member)
		}
	}
	return nil
}

// needsArguments reports whether one of the settings has an effect by arguments only, or
// none, which without a placeholder for its arguments is a mistake. In sessions the
// protocol sets a mode or an option, and bus-agent accepts or passes on approval
// requests.
func needsArguments[K comparable](d *Definition, settings map[K]Setting) bool {
	for _, s := range settings {
		switch {
		case d.session && len(s.Args) > 0 && s.Mode == "" && s.Option == "":
			return true
		case !d.session && (len(s.Args) > 0 || len(s.Env)+len(s.Files) == 0):
			return true
		}
	}
	return false
}

// has reports whether an argument of d has the placeholder.
func (d *Definition) has(hold string) bool {
	return slices.ContainsFunc(d.Args, func(a Argument) bool { return a.has(hold) })
}

// argv returns the arguments of one start. Those of the caller go before the first
// "--", or to the end.
func (d *Definition) argv(inv *registry.Invocation) []string {
	value := func(hold string) string {
		switch hold {
		case holdModel:
			return inv.Model
		case holdResume:
			return inv.Resume
		case holdWorkdir:
			return inv.Workdir
		case holdIdleTimeout:
			if inv.IdleTimeout == 0 {
				return ""
			}
			return inv.IdleTimeout.String()
		case holdHome:
			return inv.Home
		case holdMCPFile:
			return d.mcpFile(inv)
		case holdSystem:
			return inv.AppendSystemPrompt
		case holdAllowTools:
			return strings.Join(inv.AllowTools, ",")
		case holdDenyTools:
			return strings.Join(inv.DenyTools, ",")
		case holdPromptFile:
			return promptFile
		}
		return inv.Prompt
	}
	lists := map[string][]Argument{
		holdAccess: d.Access[inv.Access].Args,
		holdEffort: d.Efforts[inv.ReasoningEffort].Args,
	}
	if inv.Continue {
		lists[holdContinue] = d.Continue
	}
	var args []string
	further := inv.Args
	for _, a := range d.Args {
		switch {
		case len(a) == 1 && isList(a[0]):
			for _, own := range lists[a[0]] {
				args = own.expand(args, value)
			}
			continue
		case len(a) == 1 && a[0] == endOfOptions:
			args = append(args, further...)
			further = nil
		}
		args = a.expand(args, value)
	}
	return append(args, further...)
}

// checkValues refuses a value that would be taken for an option, where an
// element begins with it.
func (d *Definition) checkValues(inv *registry.Invocation) error {
	for _, v := range []struct{ hold, what, value string }{
		{holdModel, "model", inv.Model},
		{holdResume, "session ID", inv.Resume},
		{holdSystem, "additional system prompt", inv.AppendSystemPrompt},
	} {
		if !strings.HasPrefix(v.value, "-") {
			continue
		}
		for _, a := range d.Args {
			if slices.ContainsFunc(a, func(element string) bool { return strings.HasPrefix(element, v.hold) }) {
				return agent.Usagef("%s %q begins with a dash and would be taken for an option; nothing was started", v.what, v.value)
			}
		}
	}
	return nil
}
