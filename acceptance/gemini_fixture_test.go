//go:build acceptance

package acceptance

import (
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// geminiSettings are user settings for a login by key.
const geminiSettings = `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`

// newGemini returns a fixture for Gemini CLI with a key.
func newGemini(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
	t.Helper()
	w := newCodex(t, script, files)
	w.agent, w.modelID = "gemini", "gemini-2.5-pro"
	w.env = []string{
		"GOOGLE_GEMINI_BASE_URL=" + w.model.GeminiURL(),
		"GEMINI_API_KEY=sk-acceptance",
	}
	writeFiles(t, w.home, map[string]string{
		".gemini/settings.json": geminiSettings,
	})
	return w
}
