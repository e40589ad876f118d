package supervisor

import (
	"strings"
	"testing"
)

func TestNamesOfSessions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "Z9", "one", "a.b-c_d", "0-", strings.Repeat("n", 64)} {
		if !isName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", ".", "-a", "_a", "a b", "a/b", "a\n", "\na", "ä", "a:", "a@b", "a[", "a`b", "a{", strings.Repeat("n", 65)} {
		if isName(name) {
			t.Errorf("%q is taken", name)
		}
	}
}
