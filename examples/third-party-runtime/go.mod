module example.com/third-party-runtime

go 1.26.0

require github.com/busdk/bus-agent v0.0.0

require (
	github.com/busdk/bus-preferences v0.0.0 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.7 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/tailscale/hujson v0.0.0-20260727124030-b80ff77dac4f // indirect
	github.com/urfave/cli/v2 v2.27.7 // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.45.0 // indirect
)

// In a module of your own: the versions you want, and for bus-preferences the
// line in bus-agent's README.
replace (
	github.com/busdk/bus-agent => ../..
	github.com/busdk/bus-preferences => ../../bus-preferences
)
