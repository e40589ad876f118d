package jsonline_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/busdk/bus-agent/jsonline"
)

func ExamplePattern() {
	first := []byte(`{"delta":"one","id":"a"}`)
	r := jsonline.New(first)
	var delta, id jsonline.Text
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "delta":
			delta = r.Text()
		case "id":
			id = r.Text()
		}
	}
	var p jsonline.Pattern
	if r.End() {
		p.Learn(first, delta, id)
	}
	var found [2]jsonline.Text
	fmt.Println(p.Match([]byte(`{"delta":"tw\u006f","id":"b"}`), found[:]), found[0].String(), found[1].String())
	fmt.Println(p.Match([]byte(`{"delta":"two","id":"b","more":1}`), found[:]))
	// Output:
	// true two b
	// false
}

// FuzzPattern checks that a line that matches is JSON, that it is the line that was
// learned but for the two strings, and that these are what a reader finds.
func FuzzPattern(f *testing.F) {
	f.Add([]byte(`{"t":"x","a":"one","b":"two","c":null}`), []byte(`{"t":"x","a":"o\"n\\","b":"","c":null}`))
	f.Add([]byte(`{"a":"one","b":"two"}`), []byte(`{"a":"one","b":"two"} `))
	f.Add([]byte(`{"a":"1","b":"2","b":"3"}`), []byte("{\"a\":\"\x01\",\"b\":\"2\",\"b\":\"3\"}"))
	f.Fuzz(func(t *testing.T, learned, line []byte) {
		read := func(line []byte) (a, b jsonline.Text, ok bool) {
			r := jsonline.New(line)
			for m := r.Object(); m.Next(); {
				switch string(m.Name()) {
				case "a":
					a = r.Text()
				case "b":
					b = r.Text()
				}
			}
			return a, b, r.End()
		}
		a, b, ok := read(learned)
		if !ok {
			return
		}
		var p jsonline.Pattern
		p.Learn(learned, a, b)
		var found [2]jsonline.Text
		if !p.Match(line, found[:]) {
			return
		}
		if !json.Valid(line) {
			t.Fatalf("%q matches and is not JSON", line)
		}
		a, b, ok = read(line)
		if !ok || a.String() != found[0].String() || b.String() != found[1].String() {
			t.Fatalf("%q after %q: found %q and %q, want %q and %q", line, learned, found[0].String(), found[1].String(), a.String(), b.String())
		}
	})
}

func TestPatternLearnsStringsOfItsLineAlone(t *testing.T) {
	t.Parallel()
	const line = `{"a":"one"}`
	r := jsonline.New([]byte(line))
	m := r.Object()
	m.Next()
	a := r.Text()
	var p jsonline.Pattern
	p.Learn([]byte(line), a)
	if p.Match([]byte(line), make([]jsonline.Text, 1)) {
		t.Error("a string of another line was learned")
	}
}
