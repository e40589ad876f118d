module github.com/busdk/bus-agent/bus-agent-rest

go 1.26.0

// Server-sent events, read as their specification says and within a limit. It is
// maintained, has no dependencies and leaves the request to net/http,
// so that retries, limits of time and what counts as a whole answer are decided
// here. The official client of OpenAI takes a stream that ends early for a whole
// one, and brings the modules of two clouds.
require github.com/tmaxmax/go-sse v0.11.0
