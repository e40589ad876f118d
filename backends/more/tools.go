package more

import (
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// limitTools makes the runs of rt take lists of tools: it leaves out names from the list of
// tools that an access sets with option. A list of the CLI would add to that one, or take
// its place. Without such a list of the access, only and without are the options for the
// lists of the request.
func limitTools(rt *registry.Runtime, option, only, without string) {
	command := rt.Run.Command
	rt.Run.Options.AllowTools, rt.Run.Options.DenyTools = true, true
	rt.Run.Command = func(inv registry.Invocation) (agent.Command, error) {
		c, err := command(inv)
		if err != nil || len(inv.AllowTools)+len(inv.DenyTools) == 0 {
			return c, err
		}
		c.Args = slices.Clone(c.Args)
		for i, arg := range c.Args {
			list, joined := strings.CutPrefix(arg, option+"=")
			if arg == option && i+1 < len(c.Args) {
				list = c.Args[i+1]
			} else if !joined {
				continue
			}
			left := limited(list, inv)
			switch {
			case left == "": // which some CLIs read as all
				return c, agent.Usagef("access %s has none of the tools that the request leaves; its tools are %s; nothing was started", inv.Access, list)
			case joined:
				c.Args[i] = option + "=" + left
			default:
				c.Args[i+1] = left
			}
			return c, nil
		}
		if len(inv.AllowTools) > 0 {
			c.Args = append(c.Args, only+"="+strings.Join(inv.AllowTools, ","))
		} else {
			c.Args = append(c.Args, without+"="+strings.Join(inv.DenyTools, ","))
		}
		return c, nil
	}
}

// limited returns list, names with commas between them, without those that the request
// leaves out.
func limited(list string, inv registry.Invocation) string {
	var left []string
	for _, name := range strings.Split(list, ",") {
		if len(inv.AllowTools) == 0 && !slices.Contains(inv.DenyTools, name) || slices.Contains(inv.AllowTools, name) {
			left = append(left, name)
		}
	}
	return strings.Join(left, ",")
}
