package jsonline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/jsonline"
)

func textOf(t testing.TB, literal string) jsonline.Text {
	t.Helper()
	r := jsonline.New([]byte(literal))
	text := r.Text()
	if !r.End() {
		t.Fatalf("%q is not a string", literal)
	}
	return text
}

func TestNamesAreTheirTexts(t *testing.T) {
	t.Parallel()
	var n jsonline.Names
	for range 2 {
		for i := range 500 { // more than are kept
			name := fmt.Sprintf("item_%d", i)
			if got := n.String(textOf(t, `"`+name+`"`)); got != name {
				t.Fatalf("%q, want %q", got, name)
			}
		}
		for literal, want := range map[string]string{
			`""`: "", `"a\u0062"`: "ab", "\"\xff\"": "�", `"` + strings.Repeat("x", 200) + `"`: strings.Repeat("x", 200),
		} {
			if got := n.String(textOf(t, literal)); got != want {
				t.Errorf("%s is %q, want %q", literal, got, want)
			}
		}
	}
}

func TestNamesThatRepeatCostNothing(t *testing.T) {
	var n jsonline.Names
	name := textOf(t, `"Bash"`)
	n.String(name)
	if got := testing.AllocsPerRun(100, func() { n.String(name) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
