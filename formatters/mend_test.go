package formatters_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/formatters"
)

func TestMend(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		``:                               ``,
		`x`:                              ``,
		`["a"`:                           ``,
		`{"a":1]`:                        ``,
		`}`:                              ``,
		`{`:                              `{}`,
		` {"a`:                           `{}`,
		`{"a"`:                           `{}`,
		`{"a":`:                          `{}`,
		`{"a":12`:                        `{}`,
		`{"a":12,`:                       `{"a":12}`,
		`{"a":tru`:                       `{}`,
		`{"a":"te`:                       `{"a":"te"}`,
		`{"a":"te\`:                      `{"a":"te"}`,
		`{"a":"te\"`:                     `{"a":"te\""}`,
		`{"a":"te\u00e`:                  `{"a":"te"}`,
		`{"a":"te` + "\xe2\x82":          `{"a":"te"}`,
		`{"a":"te","b":[{"c":"d"},{"e":`: `{"a":"te","b":[{"c":"d"},{}]}`,
		`{"a":["x","y`:                   `{"a":["x","y"]}`,
		`{"a":{"b":"c"},"d`:              `{"a":{"b":"c"}}`,
		`{"a":"b"}`:                      `{"a":"b"}`,
		`{"a" : null , "b" : [ 1 , 2`:    `{"a" : null , "b" : [ 1]}`,
	} {
		if got := string(formatters.Mend([]byte(head))); got != want {
			t.Errorf("%q becomes %q, want %q", head, got, want)
		}
	}
}

// FuzzMend cuts lines everywhere. The rest is JSON and contains nothing that the
// whole line does not.
func FuzzMend(f *testing.F) {
	f.Add(`{"type":"result","is_error":false,"usage":{"input":1.5e3,"list":[1,"two",{"3":null}]},"text":"€ \"\\ \u00e4 \ud83d\ude00\n𝄞","last":[true,[],{}]}`)
	f.Add(`{ "a" : [ "b" , "c" ] , "d" : -0 }`)
	f.Add(`{"a":"`)
	f.Add(`{"a"}]":1,"`)
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > 1<<12 || strings.Contains(line, "\n") {
			return
		}
		var whole map[string]any
		valid := json.Unmarshal([]byte(line), &whole) == nil && whole != nil
		for i := range len(line) + 1 {
			mended := formatters.Mend([]byte(line[:i]))
			if !valid || i < len(line)-len(strings.TrimLeft(line, " \t\r"))+1 {
				continue
			}
			var part map[string]any
			if err := json.Unmarshal(mended, &part); err != nil {
				t.Fatalf("%q becomes %q: %v", line[:i], mended, err)
			}
			if !unique(line) { // a member that comes twice is another one for a while
				continue
			}
			if !within(part, whole) {
				t.Fatalf("%q becomes %q", line[:i], mended)
			}
		}
	})
}

// unique reports whether no object of a line has two members of one name, which
// encoding/json does not tell.
func unique(line string) bool {
	d := json.NewDecoder(strings.NewReader(line))
	type object struct {
		names map[string]bool // nil for a list
		name  bool            // the next text is a name
	}
	var open []object
	for {
		token, err := d.Token()
		if err != nil {
			return true
		}
		var last *object
		if len(open) > 0 {
			last = &open[len(open)-1]
		}
		if text, ok := token.(string); ok && last != nil && last.name {
			if last.names[text] {
				return false
			}
			last.names[text], last.name = true, false
			continue
		}
		if delim, ok := token.(json.Delim); ok {
			switch delim {
			case '{':
				open = append(open, object{map[string]bool{}, true})
				continue
			case '[':
				open = append(open, object{})
				continue
			}
			open = open[:len(open)-1]
			if len(open) == 0 {
				return true
			}
			last = &open[len(open)-1]
		}
		if last != nil && last.names != nil {
			last.name = true
		}
	}
}

// within reports whether part contains nothing that whole does not.
func within(part, whole any) bool {
	switch p := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		for name, value := range p {
			if other, there := w[name]; !there || !within(value, other) {
				return false
			}
		}
		return ok
	case []any:
		w, ok := whole.([]any)
		if !ok || len(p) > len(w) {
			return false
		}
		for i := range p {
			if !within(p[i], w[i]) {
				return false
			}
		}
		return true
	case string:
		w, ok := whole.(string)
		return ok && strings.HasPrefix(w, strings.TrimRight(p, "\uFFFD")) // half of a pair of surrogates
	}
	return part == whole
}
