package preferences

import (
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// parseToken returns s if it can be a runtime: an ID or "ID:variant".
func parseToken(s string) (string, error) {
	id, variant, ok := strings.Cut(s, ":")
	if !isID(id) || ok && !isID(variant) {
		return "", agent.Usagef("runtime %q: the name must match [a-z][a-z0-9-]*, with \":VARIANT\" for a variant", s)
	}
	return s, nil
}

// isID reports whether s has the form of a runtime ID: [a-z][a-z0-9-]*.
func isID(s string) bool {
	return s != "" && 'a' <= s[0] && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// formatTimeout returns d in short form: "60m" and not "1h0m0s".
func formatTimeout(d time.Duration) string {
	switch {
	case d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	default:
		return d.String()
	}
}
