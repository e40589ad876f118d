package described

import (
	"fmt"
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
)

var placeholders = []string{holdModel, holdResume, holdWorkdir, holdIdleTimeout, holdPromptFile, holdPrompt, holdAccess}

// endOfOptions is the argument after which none is an option.
const endOfOptions = "--"

// promptFile is where the agent reads the first of Setup.Files.
const promptFile = "/dev/fd/3"

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
func (a Argument) holds() []string {
	var list []string
	for _, element := range a {
		for _, hold, rest := cutPlaceholder(element); hold != ""; _, hold, rest = cutPlaceholder(rest) {
			list = append(list, hold)
		}
	}
	return list
}

// expand appends the elements of a with the values of its placeholders, or
// nothing when one of them has none.
func (a Argument) expand(dst []string, value func(hold string) string) []string {
	for _, hold := range a.holds() {
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
	for _, hold := range a.holds() {
		if !slices.Contains(allowed, hold) {
			return fmt.Errorf("unknown placeholder %s (known here: %s)", hold, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// checkArgs returns what is wrong with the arguments of d.
func (d *Definition) checkArgs() error {
	counts := map[string]int{}
	afterOptions := false
	for i, a := range d.Args {
		if err := checkArgument(a, placeholders); err != nil {
			return fmt.Errorf("args[%d]: %w", i, err)
		}
		for _, hold := range a.holds() {
			counts[hold]++
		}
		for _, element := range a {
			switch {
			case element == endOfOptions && len(a) > 1:
				return fmt.Errorf(`args[%d]: "--" must be a separate argument`, i)
			case element == endOfOptions:
				afterOptions = true
			case strings.Contains(element, holdAccess) && (len(a) > 1 || element != holdAccess || afterOptions):
				return fmt.Errorf(`args[%d]: %s must be a separate argument, before "--"`, i, holdAccess)
			case strings.Contains(element, holdPrompt) && (len(a) > 1 || element != holdPrompt || !afterOptions):
				return fmt.Errorf(`args[%d]: %s must be a separate argument after "--", so that no prompt is taken for an option`, i, holdPrompt)
			case strings.Contains(element, holdPromptFile) && !strings.HasSuffix(element, holdPromptFile):
				return fmt.Errorf("args[%d]: %s must be the end of an element", i, holdPromptFile)
			}
		}
	}
	return d.checkCounts(counts)
}

// checkCounts returns which placeholder the arguments lack, have too often, or
// have although no other member speaks of it.
func (d *Definition) checkCounts(counts map[string]int) error {
	for _, rule := range []struct {
		hold   string
		needed bool
		member string
	}{
		{holdPrompt, d.Prompt == promptByArgument, `"prompt": "` + promptByArgument + `"`},
		{holdPromptFile, d.Prompt == promptByFile, `"prompt": "` + promptByFile + `"`},
		{holdAccess, len(d.Access) > 0, `"access"`},
	} {
		switch n := counts[rule.hold]; {
		case n > 1:
			return fmt.Errorf("args: %s occurs %d times", rule.hold, n)
		case n == 0 && rule.needed:
			return fmt.Errorf("args: %s needs %s", rule.member, rule.hold)
		case n == 1 && !rule.needed:
			return fmt.Errorf("args: %s needs %s", rule.hold, rule.member)
		}
	}
	return nil
}

// has reports whether an argument of d has the placeholder.
func (d *Definition) has(hold string) bool {
	return slices.ContainsFunc(d.Args, func(a Argument) bool { return slices.Contains(a.holds(), hold) })
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
		case holdPromptFile:
			return promptFile
		}
		return inv.Prompt
	}
	var args []string
	further := inv.Args
	for _, a := range d.Args {
		switch {
		case len(a) == 1 && a[0] == holdAccess:
			for _, own := range d.Access[inv.Access] {
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
