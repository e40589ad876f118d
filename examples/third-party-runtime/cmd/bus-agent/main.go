// Command bus-agent is a bus-agent that knows the parrot, besides Codex.
package main

import (
	"os"

	"github.com/busdk/bus-agent/command"

	_ "example.com/third-party-runtime/parrot"
	_ "github.com/busdk/bus-agent/backends/codex"
)

func main() { os.Exit(command.Main("with-parrot")) }
