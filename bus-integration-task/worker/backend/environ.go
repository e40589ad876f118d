package backend

import (
	"os"
	"slices"
	"strings"
)

// inherited returns environ, or that of the process if it is nil.
func inherited(environ []string) []string {
	if environ == nil {
		return os.Environ()
	}
	return slices.Clone(environ)
}

// withoutCredentials returns environ without the worker's own credentials, which an
// agent could use to publish events in the worker's name.
func withoutCredentials(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "BUS_") {
			return false
		}
		return slices.ContainsFunc([]string{"_KEY", "_TOKEN", "_TOKEN_FILE", "_SECRET"}, func(suffix string) bool {
			return strings.HasSuffix(name, suffix)
		})
	})
}
