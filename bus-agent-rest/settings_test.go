package main

import (
	"strings"
	"testing"
	"time"
)

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ provider, base, want string }{
		{"xai", "https://api.x.ai", "https://api.x.ai/v1/chat/completions"},
		{"xai", "https://api.x.ai/", "https://api.x.ai/v1/chat/completions"},
		{"xai", "https://api.x.ai/v1", "https://api.x.ai/v1/chat/completions"},
		{"xai", "https://api.x.ai/v1/", "https://api.x.ai/v1/chat/completions"},
		{"xai", "https://api.x.ai/v1/chat/completions", "https://api.x.ai/v1/chat/completions"},
		{"xai", "https://api.x.ai/v1/chat/completions/", "https://api.x.ai/v1/chat/completions"},
		{"perplexity", "https://api.perplexity.ai", "https://api.perplexity.ai/chat/completions"},
		{"perplexity", "https://api.perplexity.ai/chat/completions", "https://api.perplexity.ai/chat/completions"},
		{"openai", "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"},
		{"openai", "http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"},
		{"openai", "https://example.com/v1beta/openai/", "https://example.com/v1beta/openai/chat/completions"},
		{"openai", "https://example.com/a?api-version=1", "https://example.com/a/chat/completions?api-version=1"},
	} {
		p, err := findProvider(c.provider)
		if err != nil {
			t.Fatal(err)
		}
		u, err := p.endpoint(c.base)
		if err != nil || u.String() != c.want {
			t.Errorf("%s at %s is %v, %v", c.provider, c.base, u, err)
		}
	}
	for _, base := range []string{"x", "api.x.ai", "ftp://x", "https://", "https://:1", "file:///etc/passwd", "http://[", "https://u:secret@x", "https://x#secret", "\x00secret"} {
		if u, err := providers[0].endpoint(base); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is %v, %v", base, u, err)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args            string
		environ         map[string]string
		model, endpoint string
		idle, total     time.Duration
	}{
		"nothing":    {"", nil, "", "https://api.openai.com/v1/chat/completions", 5 * time.Minute, time.Hour},
		"perplexity": {"--provider=perplexity", nil, "sonar-reasoning", "https://api.perplexity.ai/chat/completions", time.Minute, 2 * time.Minute},
		"xai":        {"--provider=xai", nil, "grok-4", "https://api.x.ai/v1/chat/completions", time.Minute, 10 * time.Minute},
		"flags": {"--provider=xai --model=grok-3 --base-url=http://a --idle-timeout=0 --timeout=5s", map[string]string{"XAI_MODEL": "x", "XAI_BASE_URL": "http://x"},
			"grok-3", "http://a/v1/chat/completions", 0, 5 * time.Second},
		"variables": {"--provider=xai", map[string]string{"XAI_MODEL": "grok-3", "XAI_API_BASE": "http://c", "XAI_BASE_URL": "http://b", "OPENAI_MODEL": "x"},
			"grok-3", "http://b/v1/chat/completions", time.Minute, 10 * time.Minute},
		"the first variable": {"--provider=xai", map[string]string{"XAI_API_ENDPOINT": "http://a", "XAI_BASE_URL": "http://b"},
			"grok-4", "http://a/v1/chat/completions", time.Minute, 10 * time.Minute},
		"an empty variable": {"--provider=xai", map[string]string{"XAI_API_ENDPOINT": " ", "XAI_API_BASE": "http://c"},
			"grok-4", "http://c/v1/chat/completions", time.Minute, 10 * time.Minute},
		"a local server": {"", map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_MODEL": "llama"},
			"llama", "http://127.0.0.1:1/v1/chat/completions", 5 * time.Minute, time.Hour},
		"the full endpoint of perplexity": {"--provider=perplexity", map[string]string{"PERPLEXITY_BASE_URL": "http://p/chat/completions", "PERPLEXITY_MODEL": "sonar"},
			"sonar", "http://p/chat/completions", time.Minute, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parseSettings(strings.Fields(c.args), func(name string) string { return c.environ[name] })
			if err != nil {
				t.Fatal(err)
			}
			if s.model != c.model || s.endpoint.String() != c.endpoint || s.idle != c.idle || s.total != c.total || s.retries != 5 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	for args, words := range map[string]string{
		"--provider=bing":            "unknown provider",
		"--nonsense":                 "not defined",
		"hello":                      "standard input",
		"--retries=-1":               "retries",
		"--retries=101":              "retries",
		"--retries=x":                "retries",
		"--timeout=-1s":              "negative",
		"--idle-timeout=-1s":         "negative",
		"--idle-timeout=5":           "idle-timeout",
		"--access=full":              "unknown access",
		"--model=":                   "empty",
		"--base-url=127.0.0.1:1":     "base URL",
		"--base-url=http://u:p@host": "login",
	} {
		if _, err := parseSettings([]string{args}, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", args, err)
		}
	}
	_, err := parseSettings(nil, func(string) string { return "secret\nX-Other: header" })
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Error(err)
	}
}
