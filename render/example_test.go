package render_test

import (
	"fmt"

	"github.com/busdk/bus-agent/render"
)

func ExampleRender() {
	prompt, err := render.Render("Fix {{FILE}}: {{PROBLEM}}", map[string]string{
		"FILE":    "main.go",
		"PROBLEM": "the template prints {{.Name}}",
	})
	fmt.Println(prompt, err)

	_, err = render.Render("Fix {{FILE}} in {{ REPO }}", map[string]string{"FILE": "main.go"})
	fmt.Println(err)
	// Output:
	// Fix main.go: the template prints {{.Name}} <nil>
	// template line 1: "{{ REPO }}" is not a placeholder; write {{REPO}}
}

func ExampleNames() {
	names, err := render.Names("Fix {{FILE}}: {{PROBLEM}} in {{FILE}}")
	fmt.Println(names, err)
	// Output: [FILE PROBLEM] <nil>
}
