// Command bus-agent-otel is bus-agent with OpenTelemetry: where the OTEL_
// variables ask for it, it exports a span for each run and each tool call, and
// metrics. See package telemetry.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/busdk/bus-agent/command"
	"github.com/busdk/bus-agent/otel/telemetry"

	_ "github.com/busdk/bus-agent/backends/all"
	_ "github.com/busdk/bus-agent/session/tmux" // for sessions in mode tmux
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version string

func main() { os.Exit(run(context.Background())) }

func run(ctx context.Context) int {
	shutdown, err := telemetry.Setup(ctx)
	warn(err)
	defer func() { warn(shutdown(ctx)) }()
	return command.Main(version, command.WithRecorder(telemetry.New()))
}

// warn says what is wrong with the telemetry, which is no failure of the program.
func warn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bus-agent: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}
