module github.com/busdk/bus-agent

go 1.26.0

require (
	github.com/busdk/bus-preferences v0.0.0 // the user's preferences; only package preferences imports it
	github.com/coder/acp-go-sdk v0.13.0 // tests: the names of the Agent Client Protocol, and its example agent
	github.com/google/go-cmp v0.7.0 // tests: readable differences
	github.com/rogpeppe/go-internal v1.14.1 // tests: testscript drives the commands; differences that do not change
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // tests: events against their schema, and another opinion on answers
	github.com/tailscale/hujson v0.0.0-20260727124030-b80ff77dac4f // reads settings with comments, with the position of each value
	github.com/urfave/cli/v2 v2.27.7 // commands and flags of bus-agent
	golang.org/x/sys v0.49.0 // pidfd, waitid and prctl of Linux, the process table of macOS; whether the processor has AVX2
	golang.org/x/term v0.45.0 // chat: line editing and raw terminals, by the Go team, with nothing but x/sys below it
	golang.org/x/tools v0.52.0 // make check: the types on other systems
)

require (
	github.com/cpuguy83/go-md2man/v2 v2.0.7 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // run-info.yaml of package runs; what the others write need not be the form we write
	golang.org/x/text v0.14.0 // indirect
)

require (
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

// Not published yet. Without this line the published module is used.
replace github.com/busdk/bus-preferences => ./bus-preferences
