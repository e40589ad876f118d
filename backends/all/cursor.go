//go:build !busagent_no_cursor

package all

import _ "github.com/busdk/bus-agent/backends/cursor"
