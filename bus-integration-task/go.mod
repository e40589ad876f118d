module github.com/busdk/bus-integration-task

go 1.26.0

replace (
	github.com/busdk/bus-agent => ../
	github.com/busdk/bus-preferences => ../bus-preferences
)

require (
	github.com/busdk/bus-agent v0.0.0 // sessions, records, structured answers and masking of secrets
	github.com/urfave/cli/v2 v2.27.7 // commands and flags
	mvdan.cc/sh/v3 v3.14.1 // reads the shell command lines that agents ran, to tell what their exit codes prove
)

require (
	github.com/google/go-cmp v0.7.0 // tests: differences people can read
	go.yaml.in/yaml/v4 v4.0.0 // tests: reads compose.yaml
)

require (
	github.com/cpuguy83/go-md2man/v2 v2.0.7 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // eventserver: bearer tokens; checks algorithm, audience and times as RFC 7519 asks
	github.com/nats-io/nats-server/v2 v2.15.2 // eventserver: the embedded event store, also as a cluster, with nothing to install
	github.com/nats-io/nats.go v1.55.0 // eventserver: client of JetStream, embedded or not
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/tailscale/hujson v0.0.0-20260727124030-b80ff77dac4f // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

require (
	github.com/chromedp/cdproto v0.159.0 // tests: the protocol of chromedp
	github.com/chromedp/chromedp v0.23.0 // tests: drives the Chromium that shows the board
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.8.0-default-no-op // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.2 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)
