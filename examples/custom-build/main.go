// Command custom-build is a bus-agent with two runtimes. The others are not in
// the binary.
package main

import (
	"os"

	"github.com/busdk/bus-agent/command"

	_ "github.com/busdk/bus-agent/backends/claude"
	_ "github.com/busdk/bus-agent/backends/codex"
)

func main() { os.Exit(command.Main("custom")) }
