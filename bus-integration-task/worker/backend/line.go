package backend

import (
	"strings"

	"github.com/busdk/bus-agent/formatters"
)

// line returns text as one printable line of at most limit bytes.
func line(text string, limit int) string {
	text = strings.Join(strings.Fields(formatters.SanitizeString(text)), " ")
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
