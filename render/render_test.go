package render_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/render"
	"github.com/google/go-cmp/cmp"
)

func TestRender(t *testing.T) {
	t.Parallel()
	vars := map[string]string{
		"A":     "1",
		"a":     "small",
		"B_2":   "two",
		"_":     "under",
		"EMPTY": "",
		"CODE":  "{{x}} }} {{",
		"OPEN":  "{{",
		"BRACE": "{",
		"NAME":  "A",
		"a b":   "never used",
	}
	for _, test := range []struct{ name, template, want string }{
		{"empty template", "", ""},
		{"no placeholders pass through", "plain\ttext\r\n\x00\xff ünï\n", "plain\ttext\r\n\x00\xff ünï\n"},
		{"no newline is added", "{{A}}", "1"},
		{"repeated placeholder", "{{A}}-{{A}}{{A}}", "1-11"},
		{"names are case-sensitive", "{{A}}{{a}}", "1small"},
		{"digits and underscores", "{{B_2}}{{_}}", "twounder"},
		{"empty value is a value", "[{{EMPTY}}]", "[]"},
		{"values are opaque", "{{CODE}}", "{{x}} }} {{"},
		{"values are not rendered again", "{{OPEN}}{{NAME}}}}", "{{A}}"},
		{"values do not complete braces", "{{{BRACE}}{{BRACE}}x}}", "{{{x}}"},
		{"three braces are a value between braces", `{"a":{{{A}}}}`, `{"a":{1}}`},
		{"lone opening", "a {{ b", "a {{ b"},
		{"lone closing", "a }} b", "a }} b"},
		{"closing before opening", "}} {{", "}} {{"},
		{"lone opening before a placeholder", "{{ {{A}}", "{{ 1"},
		{"lone closing after a placeholder", "{{A}} }}", "1 }}"},
		{"half closed", "{{A}", "{{A}"},
		{"half opened", "{A}}", "{A}}"},
		{"single braces", "func() { return {} }", "func() { return {} }"},
		{"many opening braces", strings.Repeat("{", 9), strings.Repeat("{", 9)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := render.Render(test.template, vars)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("Render(%q) = %q, want %q", test.template, got, test.want)
			}
		})
	}
}

func TestRenderErrorsNameTheToken(t *testing.T) {
	t.Parallel()
	long := "{{ " + strings.Repeat("ä", 100) + " }}"
	for _, test := range []struct {
		name, template string
		want           []string // parts of the error
	}{
		{"missing value", "x {{B}} y", []string{"{{B}}"}},
		{"all missing values", "{{B}} {{A}} {{C}} {{B}}", []string{"no value for {{B}}, {{C}}"}},
		{"other case is another name", "{{a}}", []string{"{{a}}"}},
		{"spaces", "{{ A }}", []string{`"{{ A }}"`}},
		{"nothing", "{{}}", []string{`"{{}}"`}},
		{"hyphen", "{{A-B}}", []string{`"{{A-B}}"`}},
		{"leading digit", "{{1A}}", []string{`"{{1A}}"`}},
		{"not ASCII", "{{Ä}}", []string{`"{{Ä}}"`}},
		{"across lines", "one\ntwo {{A\nB}} three", []string{"line 2", `"{{A\nB}}"`}},
		{"far apart", "{{A}}\n{{\n{{A}}\n}}", []string{"line 2", `"{{\n{{A}}\n}}"`}},
		{"four braces", "{{{{A}}}}", []string{`"{{{{A}}}}"`}},
		{"the smallest token", "{{ {{A-B}}", []string{`"{{A-B}}"`}},
		{"half closed before a placeholder and closing braces", "{{A} {{A}} }}", []string{`"{{A} {{A}} }}"`}},
		{"long tokens are cut between characters", long, []string{"{{ ää", "…", " }}"}},
		{"the advice once", "{{a-b}} {{}}", []string{`"{{a-b}}" is not a placeholder; line 1: "{{}}" is not a placeholder; write {{NAME}} with letters, digits and underscores`}},
		{"everything at once", "{{B}} {{ A }}\n{{a-b}} {{C}}", []string{
			`template line 1: "{{ A }}" is not a placeholder; write {{A}}; line 2: "{{a-b}}" is not a placeholder; write {{NAME}} with`,
			"; has no value for {{B}}, {{C}}",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := render.Render(test.template, map[string]string{"A": "1"})
			if !errors.Is(err, agent.ErrUsage) {
				t.Fatalf("Render(%q) = %q, %v, want a usage error", test.template, got, err)
			}
			if got != "" {
				t.Errorf("Render returned %q with the error", got)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
			if strings.ContainsAny(err.Error(), "\n\uFFFD") || len(err.Error()) > 250 {
				t.Errorf("error is not one short, clean line: %q", err)
			}
		})
	}
}

// However many tokens are wrong, the error names a few and a count.
func TestRenderErrorIsBounded(t *testing.T) {
	t.Parallel()
	_, err := render.Render(strings.Repeat("{{ A }}", 2000)+"{{C}}", nil)
	if err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "and 1990 more; has no value for {{C}}") {
		t.Errorf("%v", err)
	}
}

// Of the wrong tokens, only the first ones are described. It cannot be parallel, as it counts
// allocations.
func TestWrongTokensAreCountedOnly(t *testing.T) {
	template := strings.Repeat("\n\n{{ A }}", 5000)
	var err error
	if n := testing.AllocsPerRun(1, func() { _, err = render.Render(template, nil) }); n > 500 {
		t.Errorf("%v allocations", n)
	}
	if err == nil || !strings.Contains(err.Error(), "line 3: ") || !strings.Contains(err.Error(), "line 21: ") || !strings.Contains(err.Error(), "and 4990 more") {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	got, err := render.Names("{{B}} {{A}} {{ {{B}}{{b}}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"B", "A", "b"}, got); diff != "" {
		t.Error(diff)
	}
	if got, err := render.Names("no placeholders"); err != nil || len(got) != 0 {
		t.Errorf("Names = %q, %v, want none", got, err)
	}
	if _, err := render.Names("{{ A }}"); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("error = %v, want a usage error", err)
	}
}

// A short template and a value can make any length of text.
func TestTextOfAnyLengthIsNotBuilt(t *testing.T) {
	t.Parallel()
	_, err := render.Render(strings.Repeat("{{A}}", 1<<20), map[string]string{"A": strings.Repeat("x", 1<<20)})
	if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("a text of 1 TiB: %v", err)
	}
	whole := strings.Repeat("x", render.MaxLength)
	if got, err := render.Render("{{A}}", map[string]string{"A": whole}); err != nil || got != whole {
		t.Errorf("a text of the limit: %d bytes, %v", len(got), err)
	}
}

// An error names what a template holds in one short line.
func TestErrorOfHostileTemplateIsShort(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "{{A%d}}", i)
	}
	for _, template := range []string{"{{" + strings.Repeat("A", 1<<20) + "}}", many.String()} {
		if _, err := render.Render(template, nil); err == nil || len(err.Error()) > 500 {
			t.Errorf("%.20s: error of %d bytes", template, len(fmt.Sprint(err)))
		}
	}
}
