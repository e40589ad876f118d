//go:build !busagent_no_gemini

package all

import _ "github.com/busdk/bus-agent/backends/gemini"
