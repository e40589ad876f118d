package preferences

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, raw, want string }{
		{"keys are sorted at every level", `{"b":[{"d":1,"c":2}],"a":{"z":0,"y":0}}`, `{"a":{"y":0,"z":0},"b":[{"c":2,"d":1}]}`},
		{"keys are sorted by bytes", `{"é":1,"z":1,"Z":1,"":1}`, `{"":1,"Z":1,"z":1,"é":1}`},
		{"white space is removed", " [ 1 ,\n\t{ } , [ ] ]\r\n", `[1,{},[]]`},
		{"numbers keep their digits", `[1.0,1e5,1E400,-0,12345678901234567890.10]`, `[1.0,1e5,1E400,-0,12345678901234567890.10]`},
		{"strings are encoded uniformly", `"\u0041\/<>&\u00e9\ud83d\ude00\n"`, `"A/<>&é😀\n"`},
		{"control characters stay escaped", `"\u0000\u001b"`, `"\u0000\u001b"`},
		{"literals", `[true,false,null]`, `[true,false,null]`},
		{"null", `null`, `null`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := canonical([]byte(test.raw), maxDepth)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("canonical(%s) = %s, want %s", test.raw, got, test.want)
			}
		})
	}
}

func TestCanonicalErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, raw, want string }{
		{"empty", "", "unexpected end"},
		{"two values", "1 2", "line 1"},
		{"a syntax error, with its line", "{\n\n\"a\":,}", "line 3"},
		{"a repeated key", `{"a":1,"b":2,"a":1}`, `"a" appears twice`},
		{"a repeated key in a nested object", `[{"x":{"k":1,"k":2}}]`, `"k" appears twice`},
		{"a repeated key with an escape", `{"a":1,"\u0061":1}`, `"a" appears twice`},
		{"bytes that are not UTF-8", "\"\xff\"", "UTF-8"},
		{"lone high surrogate", `"\ud83d"`, "surrogate"},
		{"high surrogate before a character", `"\ud83d\u0041"`, "surrogate"},
		{"lone low surrogate", `"\ude00"`, "surrogate"},
		{"lone surrogate after a pair", `"\\ud83d\ud83d\ude00\ud83d"`, "surrogate"},
		{"too deep", strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "too deep"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := canonical([]byte(test.raw), maxDepth)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("canonical(%q) = %s, %v, want an error with %q", test.raw, got, err, test.want)
			}
		})
	}
}

// FuzzCanonical checks that canonical preserves the value and is idempotent.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{"b":1,"a":[1.0,{"d":null,"c":"\u0041"}]}`, `"\ud83d\ude00"`, `"\ud83d"`, `{"a":1,"a":1}`, `[[[]]]`, `1e400`, `"\\ud83d"`, "", " ",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := canonical(raw, maxDepth)
		if err != nil {
			return
		}
		twice, err := canonical(once, maxDepth)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("canonical(%q) = %q, whose canonical form is %q, %v", raw, once, twice, err)
		}
		if a, b := decode(t, raw), decode(t, once); !reflect.DeepEqual(a, b) {
			t.Fatalf("canonical(%q) = %q, a different value", raw, once)
		}
	})
}

// FuzzDocument checks that a file either can be read and written without loss, or is
// malformed or of another version.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		"", "\n", `{}`, `{"version":1,"values":{"a.b":1}}`, `{"version":2}`, `{"version":"1"}`, `{"values":[]}`, `null`,
		`{"version":1,"values":{"A B":{}},"more":[1]}`, `{"version":1,"version":1}`, `{"version":1.0}`, "{", "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parseDocument(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("parseDocument(%q): %v is not ErrMalformed", data, err)
			}
			return
		}
		out, err := doc.encode()
		if err != nil {
			if !errors.Is(err, ErrUnknownVersion) || doc.version == currentVersion {
				t.Fatalf("encode of %q: %v", data, err)
			}
			return
		}
		again, err := parseDocument(out)
		if err != nil {
			t.Fatalf("%q was written as %q: %v", data, out, err)
		}
		out2, err := again.encode()
		if err != nil || !bytes.Equal(out, out2) {
			t.Fatalf("%q was written as %q and then %q, %v", data, out, out2, err)
		}
		if len(bytes.TrimSpace(data)) == 0 {
			return
		}
		before, after := decode(t, data).(map[string]any), decode(t, out).(map[string]any)
		for key, value := range before {
			if !reflect.DeepEqual(value, after[key]) {
				t.Fatalf("%q was written as %q: %s was changed", data, out, key)
			}
		}
	})
}

func decode(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
