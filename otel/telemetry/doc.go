// Package telemetry tells OpenTelemetry of agent runs: a span for each run and
// for each tool call of it, and metrics of tokens, durations and cost.
//
//	shutdown, err := telemetry.Setup(ctx) // OTEL_EXPORTER_OTLP_ENDPOINT and its like
//	defer shutdown(ctx)
//	r := runner.Runner{Recorder: telemetry.New()}
//
// Names follow the GenAI semantic conventions of OpenTelemetry 1.41.0, the last
// release that holds them; README.md lists what is used. What they have no name
// for begins with "bus_agent.".
//
// Telemetry never fails a run and never holds it up: spans and metrics are sent
// in the background and dropped where that does not keep pace, and the functions
// of a recording return no error.
//
// Prompts, answers, the input and output of tools and what the agent says of its
// failures stay out unless they are asked for, see [WithContent]. Whatever is
// recorded is masked as runner.Mask does it, with the headers of the OTLP
// variables as further secrets.
package telemetry
