package runner

import (
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// checkTools refuses lists of tools that are ambiguous, and names that a CLI could read as
// a pattern, a list or an option.
func checkTools(allow, deny []string) error {
	if len(allow) > 0 && len(deny) > 0 {
		return agent.Usagef("both allowed and denied tools are given; an allowed tool leaves out all others, so give one of the lists; nothing was started")
	}
	seen := map[string]bool{}
	for _, list := range [][]string{allow, deny} {
		if len(list) > agent.MaxTools {
			return agent.Usagef("%d names of tools are more than the %d that are possible; nothing was started", len(list), agent.MaxTools)
		}
		for _, name := range list {
			switch {
			case !isToolName(name):
				return agent.Usagef(`%q is not the name of a tool: it must have letters, digits, "_", "-" and ".", at most %d, and begin with a letter, a digit or "_"; nothing was started`, name, agent.MaxToolName)
			case seen[name]:
				return agent.Usagef("tool %s is given twice; nothing was started", name)
			}
			seen[name] = true
		}
	}
	return nil
}

func isToolName(name string) bool {
	const first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
	return name != "" && len(name) <= agent.MaxToolName && strings.ContainsRune(first, rune(name[0])) && strings.Trim(name, first+"-.") == ""
}
