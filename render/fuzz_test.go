package render_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/render"
)

// FuzzRender compares Render with the contract written as two regular
// expressions: placeholders are replaced, and no pair of braces may remain.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "{{A}}", "{{{A}}}", "{{{{A}}}}", "{{A}", "{A}}", "{{", "}}", "}}{{", "{{}}", "{{ A }}",
		"{{A}}{{B}}", "{{A\nB}}", "{{ {{A}} }}", "{{1}}", "{{_1}}", "{{Ä}}", "\xff{{A}}\x00", "{{}{{A}}{}}",
	} {
		f.Add(seed, "value")
		f.Add(seed, "{{A}} }} {{")
	}
	placeholder := regexp.MustCompile(`\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}`)
	pair := regexp.MustCompile(`(?s)\{\{.*\}\}`)

	f.Fuzz(func(t *testing.T, template, value string) {
		vars := make(map[string]string)
		for _, match := range placeholder.FindAllStringSubmatch(template, -1) {
			vars[match[1]] = value
		}
		valid := !pair.MatchString(placeholder.ReplaceAllLiteralString(template, "x"))

		got, err := render.Render(template, vars)
		if !valid {
			if !errors.Is(err, agent.ErrUsage) {
				t.Fatalf("Render(%q) = %q, %v, want a usage error", template, got, err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("error has more than one line: %q", err)
			}
			return
		}
		if err != nil {
			t.Fatalf("Render(%q): %v", template, err)
		}
		if want := placeholder.ReplaceAllLiteralString(template, value); got != want {
			t.Fatalf("Render(%q) = %q, want %q", template, got, want)
		}
		for name := range vars {
			if len(name) > 50 { // it is shortened
				continue
			}
			delete(vars, name)
			if _, err := render.Render(template, vars); err == nil || !strings.Contains(err.Error(), "{{"+name+"}}") {
				t.Fatalf("Render(%q) without %s: error %v does not name it", template, name, err)
			}
			break
		}
	})
}
