//go:build !busagent_no_claude

package all

import _ "github.com/busdk/bus-agent/backends/claude"
