package telemetry

import "go.opentelemetry.io/otel/attribute"

// Attributes that are not in the conventions.
const (
	keyAccess      = attribute.Key("bus_agent.access")
	keyProject     = attribute.Key("bus_agent.project")
	keyTask        = attribute.Key("bus_agent.task")
	keyRun         = attribute.Key("bus_agent.run.id")
	keyParentRun   = attribute.Key("bus_agent.run.parent_id")
	keyPreviousRun = attribute.Key("bus_agent.run.previous_id")
	keyCost        = attribute.Key("bus_agent.cost_usd")
	// keyCumulative: the token counts are those of the whole session.
	keyCumulative = attribute.Key("bus_agent.usage.cumulative")
	// keyInterrupted: the turn was interrupted.
	keyInterrupted = attribute.Key("bus_agent.interrupted")
	// keyUnfinished: the agent ended before the tool returned a result.
	keyUnfinished = attribute.Key("bus_agent.tool.unfinished")
	// keyUntraced: the number of tool calls without a span, because too many were open.
	keyUntraced = attribute.Key("bus_agent.tool.untraced_calls")
	keyAttempt  = attribute.Key("bus_agent.retry.attempt")
	// keyAttempts: the number of runtimes of a fallback, tried or left out.
	keyAttempts = attribute.Key("bus_agent.fallback.attempts")
	keyFailure  = attribute.Key("bus_agent.retry.failure")
)
