//go:build rest

package all

import (
	_ "github.com/busdk/bus-agent/backends/openai"
	_ "github.com/busdk/bus-agent/backends/perplexity"
	_ "github.com/busdk/bus-agent/backends/xai"
)
