package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each package with an engine attacks it: with every fault of an agent at every step of a
// conversation and with invented lines, or by what an agent can show on a screen.
func TestEveryEngineIsAttacked(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	attacks := map[string][]string{"session/tmux": {"func TestHostileEscapeSequences", "func TestHostileImitation"}}
	usual := []string{"sessiontest.Visit{", "sessiontest.FuzzEngine(", "func TestHostileAgentFaultsAtEveryStep"}
	engines := 0
	for pkg := range productImports(t) {
		if !isEngine(t, productFiles(t, root, pkg)) {
			continue
		}
		engines++
		want := attacks[pkg]
		if want == nil {
			want = usual
		}
		files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		tests := textOf(t, files)
		for _, attack := range want {
			if !strings.Contains(tests, attack) {
				t.Errorf("the tests of the engine in %s do not have %s", pkg, attack)
			}
		}
	}
	if engines < 4 {
		t.Errorf("%d engines found", engines)
	}
}

// isEngine reports whether a type has the methods by which sessions know an engine.
func isEngine(t *testing.T, files []string) bool {
	method := regexp.MustCompile(`(?m)^func \(\w+ \*?(\w+)\) (Open|Send|Steer|Interrupt|Answer|Close)\(`)
	methods := map[string]int{}
	for _, m := range method.FindAllStringSubmatch(textOf(t, files), -1) {
		if methods[m[1]]++; methods[m[1]] == 6 {
			return true
		}
	}
	return false
}

func textOf(t *testing.T, files []string) string {
	t.Helper()
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
