// Command bus-agent runs AI coding agents through one interface.
//
// It is a recipe as much as a program: a build with other runtimes is a copy of
// this file with other blank imports.
package main

import (
	"os"

	"github.com/busdk/bus-agent/command"
	"github.com/busdk/bus-agent/verify/targets"

	_ "github.com/busdk/bus-agent/backends/all"
	_ "github.com/busdk/bus-agent/backends/more"
	_ "github.com/busdk/bus-agent/session/tmux" // for sessions in mode tmux
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version string

func main() { os.Exit(command.Main(version, command.WithTargets(targets.All))) }
