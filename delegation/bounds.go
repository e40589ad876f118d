package delegation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
)

// EnvBounds is the variable with the bounds of the agents that an agent may start, such
// as "access=read,depth=0": the most access, and the levels of agents below it.
const EnvBounds = "BUS_AGENT_DELEGATION"

// bounds are what an agent may give to others.
type bounds struct {
	access agent.Access
	depth  int
}

// String returns b as the value of EnvBounds.
func (b bounds) String() string { return fmt.Sprintf("access=%s,depth=%d", b.access, b.depth) }

// within returns b, narrowed to other.
func (b bounds) within(other bounds) bounds {
	return bounds{lesser(b.access, other.access), min(b.depth, other.depth)}
}

// below returns the bounds of an agent that is started with access.
func (b bounds) below(access agent.Access) bounds { return bounds{access, b.depth - 1} }

// lesser returns the access that allows less.
func lesser(a, b agent.Access) agent.Access {
	all := agent.Accesses() // the least first
	return all[min(slices.Index(all, a), slices.Index(all, b))]
}

// parseBounds returns the bounds of a value of EnvBounds. One that is not understood
// allows nothing.
func parseBounds(value string) bounds {
	access, depth, ok := strings.Cut(strings.TrimPrefix(value, "access="), ",depth=")
	n, err := strconv.Atoi(depth)
	if a, wrong := agent.ParseAccess(access); ok && err == nil && n >= 0 && wrong == nil {
		return bounds{a, n}
	}
	return bounds{agent.AccessRead, 0}
}

// ancestorValues is replaced in tests, which an agent can run.
var ancestorValues = process.AncestorValues

// inherited returns b, narrowed to the bounds in the environment and in those of the
// processes above this one.
func (b bounds) inherited(environ []string) bounds {
	values := ancestorValues(EnvBounds)
	if own, ok := agent.LookupEnv(environ, EnvBounds); ok {
		values = append(values, own)
	}
	for _, value := range values {
		b = b.within(parseBounds(value))
	}
	return b
}
