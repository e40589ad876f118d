package main

import (
	"path"
	"runtime"
)

// A product is what users install at once. It has an archive for each platform.
type product struct {
	name     string
	summary  string   // one line
	dir      string   // of its module in the tree, with its README.md and docs
	programs []string // the import paths of its programs
}

// mainProduct is the product with completions, man pages and packages of npm.
const mainProduct = "bus-agent"

// products are all products. TestEveryProgramIsReleased compares their programs with those
// of the repository.
var products = []product{
	{
		name:     mainProduct,
		summary:  "run AI coding agents through one interface",
		dir:      ".",
		programs: []string{mainPath + "/cmd/bus-agent", mainPath + "/bus-agent-mcp"}, // "bus-agent mcp" runs bus-agent-mcp
	},
	{
		name:     "bus-agent-otel",
		summary:  "bus-agent with OpenTelemetry traces and metrics",
		dir:      "otel",
		programs: []string{mainPath + "/otel/cmd/bus-agent-otel"},
	},
	{
		name:     "bus-agent-rest",
		summary:  "call a model behind HTTP, for the REST runtimes of bus-agent",
		dir:      "bus-agent-rest",
		programs: []string{mainPath + "/bus-agent-rest"},
	},
	{
		name:     "bus-integration-task",
		summary:  "run the tasks of a queue with coding agents",
		dir:      "bus-integration-task",
		programs: []string{"github.com/busdk/bus-integration-task/cmd/bus-integration-task"},
	},
}

// A platform is an operating system and an architecture, as Go names them.
type platform struct{ OS, Arch string }

func (p platform) String() string { return p.OS + "_" + p.Arch }

// platforms are those that programs are built for.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// here is the platform of this machine.
var here = platform{runtime.GOOS, runtime.GOARCH}

// programName returns the name of the program with the import path.
func programName(importPath string) string { return path.Base(importPath) }
