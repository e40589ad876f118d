package backendtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

var decoderRules = []rule{
	{name: "decoder-memory", test: decoderMemory,
		text: "A decoder neither keeps nor changes the line it is given: the next one overwrites it."},
	{name: "decoder-junk", test: decoderJunk,
		text: "No line makes a decoder panic, whatever its members are; none that is not blank is lost, and each event has a kind and a JSON form."},
	{name: "decoder-runs", test: decoderRuns, spoken: true,
		text: "Each run has its own decoder and formatter: runs that mix give what each gives alone."},
}

// decode returns the events of one line as JSON, which shares no memory.
func decode(d formatters.Decoder, line []byte) (string, error) {
	var all strings.Builder
	for _, e := range d.Decode(line, nil) {
		text, err := json.Marshal(e)
		if err != nil {
			return "", fmt.Errorf("an event of the line %s has no JSON form: %w", clip(string(line)), err)
		}
		if e.Kind == "" {
			return "", fmt.Errorf("an event of the line %s has no kind", clip(string(line)))
		}
		all.Write(append(text, '\n'))
	}
	return all.String(), nil
}

func decoderMemory(w *world) {
	lines := append(w.all(), "no JSON at all", `{"type":"backendtest"}`)
	lines = append(lines, lines...)
	shared, apart := w.Runtime.NewDecoder(), w.Runtime.NewDecoder()
	buffer := make([]byte, 0, 1<<16)
	for _, line := range lines {
		buffer = append(buffer[:0], line...)
		got, err := decode(shared, buffer)
		if err != nil {
			w.failf("%v", err)
		}
		if string(buffer) != line {
			w.failf("the line %s was changed", clip(line))
		}
		for i := range buffer {
			buffer[i] = '!'
		}
		if want, _ := decode(apart, []byte(line)); got != want {
			w.failf("once the lines before were overwritten, %s gives %s in place of %s", clip(line), clip(got), clip(want))
		}
	}
	one := []agent.Event{{Kind: agent.KindHeartbeat}}
	if all := w.Runtime.NewDecoder().Decode([]byte(lines[0]), one); len(all) == 0 || all[0].Kind != agent.KindHeartbeat {
		w.failf("earlier events are lost")
	}
}

func decoderJunk(w *world) {
	lines := []string{
		"", " ", "\t\r", "text", "{", "}", "[", "[]", "{}", "null", "true", "0", `""`, "\"", "\x00", "\xff\xfe", "\xef\xbb\xbf{}",
		`{"type":null}`, `{"type":1}`, `{"type":""}`, `{"type":"backendtest"}`, "[" + strings.Repeat("[", 5000), strings.Repeat(`{"a":`, 5000),
	}
	for _, line := range w.all() {
		lines = append(lines, line, line[:len(line)/2], line[:len(line)-1], line+line, " "+line, line+"\r")
		lines = append(lines, mutations(line)...)
	}
	// Twice through one decoder, as what a line says may be kept.
	d := w.Runtime.NewDecoder()
	for _, line := range append(lines, lines...) {
		if !w.survives(d, line) {
			d = w.Runtime.NewDecoder()
		}
	}
}

// survives decodes a line and reports whether the decoder can continue.
func (w *world) survives(d formatters.Decoder, line string) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			w.failf("the line %s makes it panic: %v", clip(line), p)
			ok = false
		}
	}()
	if w.Runtime.Recognize != nil {
		w.Runtime.Recognize([]byte(line))
	}
	got, err := decode(d, []byte(line))
	if err != nil {
		w.failf("%v", err)
	}
	if got == "" && len(bytes.TrimSpace([]byte(line))) > 0 {
		w.failf("the line %s was lost", clip(line))
	}
	return true
}

// mutations returns a JSON line with each of its members gone or another value.
func mutations(line string) (list []string) {
	var value any
	if json.Unmarshal([]byte(line), &value) != nil {
		return nil
	}
	var walk func(v any, put func(any))
	emit := func() {
		if text, err := json.Marshal(value); err == nil {
			list = append(list, string(text))
		}
	}
	walk = func(v any, put func(any)) {
		for _, other := range []any{nil, true, -1.5, "", "x", []any{}, []any{nil}, map[string]any{}, map[string]any{"x": nil}} {
			put(other)
			emit()
		}
		put(v)
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				old := v[key]
				delete(v, key)
				emit()
				v[key] = old
				walk(old, func(other any) { v[key] = other })
			}
		case []any:
			for i, old := range v {
				walk(old, func(other any) { v[i] = other })
			}
		}
	}
	walk(value, func(other any) { value = other })
	return list
}

// decoderRuns decodes two conversations in turns.
func decoderRuns(w *world) {
	say := func(text string) []string {
		var lines []string
		s := w.script()
		for _, step := range slices.Concat(s.say(s.lines.Session, ""), s.say(s.lines.Text, text+" one"), s.say(s.lines.ToolCall, ""),
			s.say(s.lines.ToolResult, text), s.say(s.lines.Text, text+" two"), s.say(s.lines.Success, "")) {
			lines = append(lines, strings.Split(strings.TrimSuffix(step.Text, "\n"), "\n")...)
		}
		return lines
	}
	type reader struct {
		decoder   formatters.Decoder
		formatter agent.Formatter
		text      []byte
	}
	read := func(r *reader, line string) {
		for _, e := range r.decoder.Decode([]byte(line), nil) {
			r.text = r.formatter.Append(r.text, &e)
		}
	}
	begin := func() *reader {
		return &reader{decoder: w.Runtime.NewDecoder(), formatter: w.Runtime.NewFormatter()}
	}
	here, there := say("here"), say("there")
	alone := [2]string{}
	for i, lines := range [][]string{here, there} {
		r := begin()
		for _, line := range lines {
			read(r, line)
		}
		alone[i] = string(r.text)
	}
	a, b := begin(), begin()
	for i := range here {
		read(a, here[i])
		read(b, there[i])
	}
	if string(a.text) != alone[0] || string(b.text) != alone[1] {
		w.failf("mixed with another run it says %s in place of %s", clip(string(a.text)), clip(alone[0]))
	}
}
