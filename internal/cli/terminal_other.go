//go:build !linux && !darwin

package cli

import "os"

// isTerminal is false where there is no way to know: no spinner, no color.
func isTerminal(*os.File) bool { return false }
