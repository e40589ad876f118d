package preferences

import (
	"errors"
	"regexp"
	"testing"
)

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "bus-agent.runtime", "a.b.c", "0.1", "-", "_._", "bus-agent.for_model.gpt-5.1-codex"} {
		if err := checkKey(key); err != nil {
			t.Errorf("checkKey(%q) = %v", key, err)
		}
	}
	for _, key := range []string{"", ".", ".a", "a.", "a..b", "A", "a.B", "a b", "a/b", "a:b", "ä", "a\n", "a=b", "\x00"} {
		if err := checkKey(key); !errors.Is(err, ErrInvalidKey) {
			t.Errorf("checkKey(%q) = %v, want ErrInvalidKey", key, err)
		}
	}
}

func TestHasSegments(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key, prefix string
		want        bool
	}{
		{"a.b", "", true},
		{"a.b", "a", true},
		{"a.b", "a.b", true},
		{"a.b.c", "a.b", true},
		{"ab", "a", false},
		{"a-b.c", "a", false},
		{"a", "a.b", false},
	} {
		if got := hasSegments(test.key, test.prefix); got != test.want {
			t.Errorf("hasSegments(%q, %q) = %v", test.key, test.prefix, got)
		}
	}
}

// FuzzKey compares checkKey with a regular expression.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{"", "a", "a.b", ".a", "a.", "a..b", "A", "bus-agent.model_verbosity", "ä", "a\n"} {
		f.Add(seed)
	}
	grammar := regexp.MustCompile(`\A[a-z0-9_-]+(\.[a-z0-9_-]+)*\z`)
	f.Fuzz(func(t *testing.T, key string) {
		if got, want := checkKey(key) == nil, grammar.MatchString(key); got != want {
			t.Errorf("checkKey(%q) accepts: %v, want %v", key, got, want)
		}
	})
}
