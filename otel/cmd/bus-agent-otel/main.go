// Command bus-agent-otel is bus-agent with OpenTelemetry. It exports spans and metrics
// of agent runs if enabled by the OTEL_ environment variables, as described in package
// telemetry, and otherwise behaves like bus-agent.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/busdk/bus-agent/command"
	"github.com/busdk/bus-agent/otel/telemetry"
	"github.com/busdk/bus-agent/verify/targets"

	_ "github.com/busdk/bus-agent/backends/all"
	_ "github.com/busdk/bus-agent/backends/more"
	_ "github.com/busdk/bus-agent/session/tmux" // for sessions in mode tmux
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version string

func main() { os.Exit(run(context.Background())) }

func run(ctx context.Context) int {
	shutdown, err := telemetry.Setup(ctx, version)
	warn(err)
	defer func() { warn(shutdown(ctx)) }()
	return command.Main(version, command.WithTargets(targets.All), command.WithRecorder(telemetry.New()))
}

// warn prints an error of the telemetry, which does not change the exit code.
func warn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bus-agent: "+err.Error())
	}
}
