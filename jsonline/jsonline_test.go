package jsonline_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/jsonline"
)

func ExampleReader() {
	line := []byte(`{"type":"said","text":"caf\u00e9\n","size":12,"tags":["a","b"],"more":{"type":"ignored"}}`)
	r := jsonline.New(line)
	var kind, text string
	var size int64
	var tags []string
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "type":
			kind = r.String()
		case "text":
			text = r.String()
		case "size":
			size = r.Int()
		case "tags":
			for e := r.Array(); e.Next(); {
				tags = append(tags, r.String())
			}
		}
	}
	fmt.Printf("%s %q %d %v %v\n", kind, text, size, tags, r.End())
	// Output: said "café\n" 12 [a b] true
}

// hostile is JSON, and what looks like it.
var hostile = []string{
	``, ` `, `{`, `}`, `[`, `]`, `{}`, `[]`, `[[]]`, `{"a":{}}`, `[{},[]]`, `{} {}`, `{}x`, ` { } `, "\t[\r\n1 , 2]\n",
	`null`, `nul`, `nulll`, `true`, `tru`, `false`, `falsey`, `0`, `-0`, `01`, `1.`, `.5`, `1.5e`, `1e+5`, `1E-05`, `-`, `--1`, `+1`,
	`1e999999`, `123456789012345678901234567890`, `9223372036854775807`, `-9223372036854775808`, `9223372036854775808`,
	`""`, `"`, `"a`, `"\`, `"\"`, `"\\"`, `"\x"`, `"\u12"`, `"\u12G4"`, `"\u0000"`, `"\uD800"`, `"\uDC00\uD800"`, `"\uD83D\uDE00"`,
	`"\uD83D\u0041"`, `"\uD83Dx"`, `"\uD83D\"`, "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\n\"", "\"\t\"", "\"\xff\"", "\"\xf0\x9f\x98\"",
	"\"\xed\xa0\x80\"", "\"1234567\x018\"", "\"12345678\xff\\n\xfe9\"", "\"é漢😀\\n\\t\\b\\f\\r\\/\"", `"1234567"`, `"12345678"`, `"123456789\n"`,
	`{"a":1,"a":2}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{"a" : 1 , "b" : [ ] }`, `{,}`, `[,]`, `[1,]`, `[1 2]`, `[1}`, `{"a":1]`,
	`{"a\u0062":1}`, "{\"\xff\":1}", `{"":""}`, "\ufeff{}", `{"a":[1,{"b":[2,{"c":"d"}]}]}`, "{\x00}", "\x00", "{}\x00", "{\"a\"\x0b:1}",
	strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 9999) + "[]" + strings.Repeat("}", 9999),
	strings.Repeat(`{"a":[`, 3000) + "1" + strings.Repeat("]}", 3000), strings.Repeat(`[{"a":`, 100) + "1" + strings.Repeat("]}", 100),
	strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64), strings.Repeat(`[`, 65) + strings.Repeat(`]`, 65), strings.Repeat(`{"":`, 129) + `0` + strings.Repeat(`}`, 129),
	`"` + strings.Repeat(`\n`, 1000) + `"`, `"` + strings.Repeat("x", 100_000) + `"`,
}

func TestReaderAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, line := range hostile {
		compare(t, []byte(line))
	}
}

func FuzzReader(f *testing.F) {
	for _, line := range hostile {
		if len(line) < 200 {
			f.Add([]byte(line))
		}
	}
	f.Fuzz(compare)
}

// compare reads line in every way and holds that against encoding/json.
func compare(t *testing.T, line []byte) {
	var want any
	valid := json.Unmarshal(line, &want) == nil
	if !valid {
		valid = json.Valid(line) // a number out of range
		want = nil
	}
	skipped := jsonline.New(line)
	if got := skipped.End(); got != valid {
		t.Fatalf("%.200q skipped: valid %v, want %v", line, got, valid)
	}
	r := jsonline.New(line)
	raw := r.Raw()
	if end := r.End(); end != valid || end && string(raw) != strings.Trim(string(line), " \t\r\n") {
		t.Fatalf("%.200q: raw %.200q, valid %v, want %v", line, raw, end, valid)
	}
	walked := jsonline.New(line)
	got := walk(&walked)
	switch end := walked.End(); {
	case end && !valid, !end && valid && want != nil:
		t.Fatalf("%.200q walked: valid %v, want %v", line, end, valid)
	case end && want != nil && !reflect.DeepEqual(got, want):
		t.Fatalf("%.200q: %#v, want %#v", line, got, want)
	}
	half := jsonline.New(line)
	for m := half.Object(); m.Next(); {
		if len(m.Name())%2 == 0 {
			walk(&half)
		}
	}
	if half.End() && !valid {
		t.Fatalf("%.200q half read is valid", line)
	}
}

func walk(r *jsonline.Reader) any {
	switch r.Kind() {
	case jsonline.Null:
		r.Null()
	case jsonline.Bool:
		return r.Bool()
	case jsonline.Number:
		f, _ := strconv.ParseFloat(string(r.Raw()), 64)
		return f
	case jsonline.String:
		return r.String()
	case jsonline.Array:
		list := []any{}
		for e := r.Array(); e.Next(); {
			list = append(list, walk(r))
		}
		return list
	case jsonline.Object:
		object := map[string]any{}
		for m := r.Object(); m.Next(); {
			name := string([]rune(string(m.Name())))
			object[name] = walk(r)
		}
		return object
	}
	return nil
}

func TestReaderRefusesOtherTypes(t *testing.T) {
	t.Parallel()
	takes := map[string]func(*jsonline.Reader){
		"string": func(r *jsonline.Reader) { _ = r.String() },
		"text":   func(r *jsonline.Reader) { r.Text() },
		"bool":   func(r *jsonline.Reader) { r.Bool() },
		"int":    func(r *jsonline.Reader) { r.Int() },
		"object": func(r *jsonline.Reader) {
			for m := r.Object(); m.Next(); {
			}
		},
		"array": func(r *jsonline.Reader) {
			for e := r.Array(); e.Next(); {
			}
		},
	}
	fits := map[string]string{
		`"a"`: "string text", `true`: "bool", `7`: "int", `7.5`: "", `1e2`: "", `{"a":1}`: "object", `[1]`: "array",
		`null`: "string text bool int object array", `9223372036854775808`: "",
	}
	for value, types := range fits {
		for name, take := range takes {
			for _, line := range []string{value, `{"v":` + value + `,"w":1}`} {
				r := jsonline.New([]byte(line))
				if line == value {
					take(&r)
				} else {
					for m := r.Object(); m.Next(); {
						if string(m.Name()) == "v" {
							take(&r)
						}
					}
				}
				if want := strings.Contains(" "+types+" ", " "+name+" "); r.End() != want {
					t.Errorf("%s taken as %s: %v, want %v", line, name, !want, want)
				}
			}
		}
	}
}

func TestReaderUsedWrongFails(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*jsonline.Reader){
		"a value taken twice":   func(r *jsonline.Reader) { r.Raw(); r.Raw() },
		"an object left early":  func(r *jsonline.Reader) { m := r.Object(); m.Next() },
		"an array left early":   func(r *jsonline.Reader) { m := r.Object(); m.Next(); e := r.Array(); e.Next(); m.Next() },
		"a value of a gone one": func(r *jsonline.Reader) { _ = r.Text(); _ = r.Int() },
	} {
		r := jsonline.New([]byte(`{"a":[1,2]}`))
		use(&r)
		if r.End() {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestIntReadsAllOfThem(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, -1, 7, 999_999_999_999_999_999, -99_999_999_999_999_999, 1<<63 - 1, -1 << 63} {
		r := jsonline.New(fmt.Append(nil, n))
		if got := r.Int(); got != n || !r.End() {
			t.Errorf("%d is read as %d", n, got)
		}
	}
}

func TestTextUnescapesWhenAsked(t *testing.T) {
	t.Parallel()
	r := jsonline.New([]byte(`"a\nb"`))
	text := r.Text()
	if got := string(text.Raw()); got != `a\nb` || text.IsEmpty() || !text.Is("a\nb") || text.Is(`a\nb`) {
		t.Errorf("%q", got)
	}
	if got := string(text.AppendTo([]byte("> "))); got != "> a\nb" {
		t.Errorf("%q", got)
	}
	for raw, want := range map[string]string{`a\`: `a\`, `\q\n`: "\\q\n", `\u12`: `\u12`, "\xff\\n": "�\n", `\ud83d\ude0`: "�\\ude0", ``: ``} {
		if got := string(jsonline.Unescape(nil, []byte(raw))); got != want {
			t.Errorf("Unescape(%q) = %q, want %q", raw, got, want)
		}
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	line := []byte(`{"type":"said","n":1,"list":[{"text":"a\nb"}],"more":{"a":[true,null,"é"]}}`)
	if n := testing.AllocsPerRun(100, func() {
		r := jsonline.New(line)
		for m := r.Object(); m.Next(); {
			switch string(m.Name()) {
			case "type":
				r.Text()
			case "n":
				r.Int()
			case "list":
				for e := r.Array(); e.Next(); {
					for m := r.Object(); m.Next(); {
						r.Text()
					}
				}
			}
		}
		if !r.End() {
			t.Error("not read")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
