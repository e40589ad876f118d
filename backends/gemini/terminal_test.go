package gemini

import (
	"os"
	"path/filepath"
	"testing"
)

// The agents of a repository are left out, and the user's other settings stay.
func TestWithoutAgents(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, []byte(`{"a":1,"experimental":{"b":2,"enableAgents":true}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := withoutAgents(file); err != nil {
		t.Fatal(err)
	}
	const want = `{"a":1,"experimental":{"b":2,"enableAgents":false}}`
	if text, err := os.ReadFile(file); err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	if err := os.WriteFile(file, []byte(`{"experimental":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := withoutAgents(file); err == nil {
		t.Error("settings that are not understood are taken")
	}
}
