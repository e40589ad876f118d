//go:build !busagent_no_codex

package all

import _ "github.com/busdk/bus-agent/backends/codex"
