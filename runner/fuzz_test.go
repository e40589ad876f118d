package runner_test

import (
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/runner"
)

// FuzzKeyForModel checks that the key of a model is valid in a preferences file, and
// that the model can be recovered from it.
func FuzzKeyForModel(f *testing.F) {
	for _, model := range []string{"", "gpt-5.5", "hex.61", "hex", "a..b", "A", "gpt-oss:20b", "\xff", "ä", "a."} {
		f.Add(model)
	}
	grammar := regexp.MustCompile(`\A[a-z0-9_-]+(\.[a-z0-9_-]+)*\z`)
	f.Fuzz(func(t *testing.T, model string) {
		if model == "" {
			return // not valid in a request
		}
		key := runner.KeyForModel("bus-agent.model", model)
		rest, ok := strings.CutPrefix(key, "bus-agent.model.")
		if !ok || !grammar.MatchString(key) {
			t.Fatalf("%q has the key %q", model, key)
		}
		if encoded, ok := strings.CutPrefix(rest, "hex."); ok {
			decoded, err := hex.DecodeString(encoded)
			if rest = string(decoded); err != nil {
				t.Fatalf("%q has the key %q: %v", model, key, err)
			}
		}
		if rest != model {
			t.Fatalf("%q has the key of %q", model, rest)
		}
	})
}
