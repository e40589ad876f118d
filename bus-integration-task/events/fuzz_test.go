package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"testing"
)

// Whatever a server sends, the reader ends, and events it returns are valid.
func FuzzReader(f *testing.F) {
	for _, text := range []string{"", "\n\n", `{"id":"evt_0000000000000000001","name":"a.b","payload":{}}` + "\n", `{"control":"ended","status":401,"error":{"type":"t"}}` + "\n",
		`{"control":"x","name":"a","error":7}` + "\n", `{"name":"a","error":{"code":"c"},"metadata":{"a":1}}` + "\n", "{", "null\n", "[]\n", `{"name":7}` + "\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newLineReader(bytes.NewReader(text))
		for {
			event, control, err := r.next()
			if err != nil {
				if err != io.EOF && err != errCut && !errors.Is(err, ErrInvalid) {
					t.Error(err)
				}
				return
			}
			if (event == nil) == (control == nil) || event != nil && (event.Name == "" || !json.Valid(event.Payload)) {
				t.Errorf("%+v %+v", event, control)
			}
		}
	})
}

var nameGrammar = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*$`)

func FuzzValidName(f *testing.F) {
	for _, name := range []string{"", ".", "a", "a.b", "a..b", "a.*", "a.>", "A", "a b", "\u00e9", "a\n"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		want := len(name) <= MaxNameBytes && nameGrammar.MatchString(name)
		if got := ValidName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	})
}
