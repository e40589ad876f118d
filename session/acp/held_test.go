package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestHeldToolsAreBounded reports calls without end in one turn. Once some are
// forgotten, no file is taken for all that a call names.
func TestHeldToolsAreBounded(t *testing.T) {
	t.Parallel()
	large, err := json.Marshal(strings.Repeat("x", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	var d decoder
	for n := range 200 {
		d.tool(&toolCall{ID: fmt.Sprint(n), RawInput: large})
		if held := len(d.tools) << 20; held > maxHeld {
			t.Fatalf("%d calls hold %d bytes", n, held)
		}
	}
	if names := d.files(&toolCall{ID: "0", RawInput: json.RawMessage(`{"path":"a"}`)}); !slices.Contains(names, "") {
		t.Errorf("the files are %q", names)
	}
	if d.reset(); d.held != 0 || d.forgot {
		t.Errorf("the next turn begins with %d, %v", d.held, d.forgot)
	}
}
