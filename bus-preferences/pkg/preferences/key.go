package preferences

import (
	"fmt"
	"strings"
)

const segmentChars = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// checkKey returns an error if key is not valid.
func checkKey(key string) error {
	if isKey(key) {
		return nil
	}
	return fmt.Errorf("%w %q: use segments of a-z, 0-9, - and _ joined by single dots", ErrInvalidKey, key)
}

func isKey(s string) bool {
	for segment := range strings.SplitSeq(s, ".") {
		if segment == "" || strings.Trim(segment, segmentChars) != "" {
			return false
		}
	}
	return true
}

// hasSegments reports whether key begins with the segments of prefix.
func hasSegments(key, prefix string) bool {
	rest, ok := strings.CutPrefix(key, prefix)
	return ok && (prefix == "" || rest == "" || rest[0] == '.')
}
