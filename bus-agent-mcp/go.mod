module github.com/busdk/bus-agent/bus-agent-mcp

go 1.26.0

require (
	github.com/busdk/bus-agent v0.0.0
	github.com/google/jsonschema-go v0.4.3 // the schemas of the tools' inputs, as the SDK infers them
	github.com/modelcontextprotocol/go-sdk v1.8.0 // the Model Context Protocol, by its authors
)

require (
	github.com/busdk/bus-preferences v0.0.0 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.7 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/tailscale/hujson v0.0.0-20260727124030-b80ff77dac4f // indirect
	github.com/urfave/cli/v2 v2.27.7 // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/oauth2 v0.35.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.45.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

// Not published yet. In a module of your own: the versions you want, and for
// bus-preferences the line in bus-agent's README.
replace (
	github.com/busdk/bus-agent => ..
	github.com/busdk/bus-preferences => ../bus-preferences
)
