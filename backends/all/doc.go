// Package all registers every runtime that comes with bus-agent:
//
//	import _ "github.com/busdk/bus-agent/backends/all"
//
// A program that wants fewer imports only those it wants, or leaves single ones
// out of this package with the build tags busagent_no_claude, busagent_no_codex,
// busagent_no_cursor and busagent_no_gemini.
//
// Models behind HTTP interfaces are left out: the build tag rest adds the runtimes
// openai, perplexity and xai, which need the program bus-agent-rest.
package all
