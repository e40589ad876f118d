package preferences

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// checkLocation refuses a variable with a path relative to the current directory: a
// repository there could supply preferences, and so the programs that they describe.
func checkLocation() error {
	for _, name := range []string{"BUS_PREFERENCES_PATH", "BUS_CONFIG_DIR"} {
		place := os.Getenv(name)
		if strings.TrimSpace(place) == "" {
			continue
		}
		if !filepath.IsAbs(place) {
			return agent.Usagef("%s: %.200q depends on the current directory; name an absolute path", name, place)
		}
		return nil // the second is not used
	}
	return nil
}
