package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-agent/agent"
)

// withParent returns ctx with the span in environ as its parent, unless it has one.
func withParent(ctx context.Context, environ []string) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, &environment{vars: environ})
}

// propagated returns the variables to add to environ, so that the span of ctx becomes
// the parent of the spans of a process.
func propagated(ctx context.Context, environ []string) []string {
	var vars environment
	propagation.TraceContext{}.Inject(ctx, &vars)
	if _, stale := agent.LookupEnv(environ, "TRACESTATE"); stale && vars.Get("tracestate") == "" {
		vars.vars = append(vars.vars, "TRACESTATE") // unset that of another parent
	}
	return vars.vars
}

// environment is the carrier that OpenTelemetry specifies for processes: "NAME=value"
// entries, with the names of the fields in upper case.
type environment struct {
	vars []string
}

func (e *environment) Get(key string) string {
	value, _ := agent.LookupEnv(e.vars, strings.ToUpper(key))
	return value
}

func (e *environment) Set(key, value string) {
	e.vars = append(e.vars, strings.ToUpper(key)+"="+value)
}

func (e *environment) Keys() []string {
	keys := make([]string, len(e.vars))
	for i, entry := range e.vars {
		keys[i], _, _ = strings.Cut(entry, "=")
	}
	return keys
}
