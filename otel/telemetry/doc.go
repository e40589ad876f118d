// Package telemetry exports agent runs to OpenTelemetry: a span for each run, for
// each turn of a session and for each tool call, and metrics of tokens, durations
// and cost.
//
//	shutdown, err := telemetry.Setup(ctx, "1.2.3") // configured by OTEL_ variables
//	defer shutdown(ctx)
//	r := runner.Runner{Recorder: telemetry.New()}
//
// Names follow the GenAI semantic conventions of OpenTelemetry 1.41.0, the last
// release that contains them. Other names begin with "bus_agent.". README.md lists
// all of them.
//
// Telemetry never fails or delays a run: spans and metrics are sent in the
// background and dropped if the queue is full.
//
// Prompts, answers, tool input and output, and error texts are not recorded, unless
// enabled with [WithContent]. All recorded text is masked as by runner.Mask, and
// the values in OTEL_EXPORTER_OTLP_HEADERS are masked too.
package telemetry
