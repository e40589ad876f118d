package formatters_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// source is a runtime that prints text.
type source struct{ formatter agent.Formatter }

func (source) NewDecoder() formatters.Decoder  { return formatters.Generic() }
func (s source) NewFormatter() agent.Formatter { return s.formatter }
func text() source                             { return source{formatters.Text()} }

func events(t *testing.T, in ...string) []agent.Event {
	t.Helper()
	var all []agent.Event
	s := formatters.NewStream(formatters.Generic(), func(e *agent.Event) error {
		all = append(all, *e.Clone())
		return nil
	})
	for _, part := range in {
		if _, err := s.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStreamDecodesLines(t *testing.T) {
	t.Parallel()
	line := func(s string) agent.Event {
		return agent.Event{Kind: agent.KindText, MessageID: "output", Delta: true, Text: s}
	}
	want := []agent.Event{line("one\n"), line("\n"), line("two\n")}
	if diff := cmp.Diff(want, events(t, "one\n\nt", "wo")); diff != "" {
		t.Error(diff)
	}
}

func TestStreamShowsTheHeadOfALongLine(t *testing.T) {
	t.Parallel()
	head := `{"type":"assistant","text":"`
	long := head + strings.Repeat("ä", formatters.MaxLine) + `"}`
	got := events(t, "one\n", long, "\ntwo\n")
	if len(got) != 3 || got[2].Text != "two\n" {
		t.Fatalf("%d events", len(got))
	}
	e := got[1]
	if e.Kind != agent.KindRaw || !e.Truncated || e.Size != int64(len(long)) || e.LineType != "assistant" || !strings.HasPrefix(e.Text, head) ||
		len(e.Text) > 64<<10 || len(e.Text) < 60<<10 || !strings.HasSuffix(e.Text, "ä") {
		t.Errorf("kind %s, truncated %t, size %d, %d bytes of text", e.Kind, e.Truncated, e.Size, len(e.Text))
	}
}

func TestStreamStopsAtAnError(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	n := 0
	s := formatters.NewStream(formatters.Generic(), func(*agent.Event) error { n++; return stop })
	if _, err := s.Write([]byte("a\nb\n")); err != stop {
		t.Errorf("Write: %v", err)
	}
	if err := s.Close(); err != stop || n != 1 {
		t.Errorf("Close: %v after %d events", err, n)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		source         formatters.Source
		stdout, stderr string
		want           string
	}{
		{"text", text(), "a\x1b[1mb\nc", "", "ab\nc\n"},
		{"standard error follows", text(), "a", "w\x07arning", "a\nwarning\n"},
		{"nothing", text(), "", "", ""},
		{"raw is unchanged", source{formatters.Raw()}, "a\x1b\r\n", "b", "a\x1b\r\nb"},
	} {
		got, err := formatters.Format(test.source, []byte(test.stdout), []byte(test.stderr))
		if err != nil || got != test.want {
			t.Errorf("%s: %q, %v; want %q", test.name, got, err, test.want)
		}
	}
}

func TestFormatWithoutSource(t *testing.T) {
	t.Parallel()
	for _, src := range []formatters.Source{nil, source{}} {
		if _, err := formatters.Format(src, nil, nil); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("Format(%v): %v", src, err)
		}
	}
}

func TestIsRaw(t *testing.T) {
	t.Parallel()
	if !formatters.IsRaw(formatters.Raw()) || formatters.IsRaw(formatters.Text()) || formatters.IsRaw(nil) {
		t.Error("IsRaw takes one formatter for another")
	}
	if got := formatters.Raw().Append([]byte("x"), &agent.Event{Kind: agent.KindText, Text: "y"}); string(got) != "x" {
		t.Errorf("Raw rendered %q", got)
	}
}

func ExampleLines() {
	l := formatters.Lines{Handle: func(line []byte, truncated bool, size int64) error {
		fmt.Printf("%q\n", line)
		return nil
	}}
	fmt.Fprint(&l, "one\ntw")
	fmt.Fprint(&l, "o\r\nthree")
	l.Close()
	// Output:
	// "one"
	// "two"
	// "three"
}

func ExampleStream() {
	show := formatters.Text()
	s := formatters.NewStream(formatters.Generic(), func(e *agent.Event) error {
		_, err := os.Stdout.Write(show.Append(nil, e))
		return err
	})
	fmt.Fprint(s, "Hello, ")
	fmt.Fprint(s, "world\nand \x1b[31mgoodbye")
	s.Close()
	// Output:
	// Hello, world
	// and goodbye
}

func ExampleFormat() {
	out, err := formatters.Format(text(), []byte("All \x1b[32mtests\x1b[0m pass.\n"), nil)
	fmt.Printf("%q %v\n", out, err)
	// Output: "All tests pass.\n" <nil>
}

func ExampleText() {
	f := formatters.Text()
	var out []byte
	for _, e := range []agent.Event{
		{Kind: agent.KindText, MessageID: "1", Delta: true, Text: "I look"},
		{Kind: agent.KindText, MessageID: "1", Delta: true, Text: " first."},
		{Kind: agent.KindToolCall, Tool: &agent.Tool{Name: "Bash", Input: []byte(`{"command":"ls"}`)}},
		{Kind: agent.KindToolResult, Tool: &agent.Tool{Output: agent.Plain("go.mod")}},
		{Kind: agent.KindResult},
	} {
		out = f.Append(out, &e)
	}
	fmt.Print(string(out))
	// Output:
	// I look first.
	// [tool] Bash: ls
	// [result] go.mod
}

func ExampleSanitizeString() {
	fmt.Printf("%q\n", formatters.SanitizeString("a\x1b]0;title\x07b\u202ec"))
	// Output: "abc"
}

func TestJSONRendersOneLineForEachEvent(t *testing.T) {
	t.Parallel()
	f := formatters.JSON()
	var text []byte
	for _, e := range []agent.Event{{Kind: agent.KindText, Text: "a\nb"}, {Kind: agent.KindHeartbeat}} {
		text = f.Append(text, &e)
	}
	if got, want := string(text), `{"kind":"text","text":"a\nb"}`+"\n"+`{"kind":"heartbeat"}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// sayings decodes the lines of an agent that prints {"say":"..."} and, at its end,
// {"done":true} or {"done":false}.
type sayings struct{}

func (sayings) Decode(line []byte, events []agent.Event) []agent.Event {
	var l struct {
		Say  *string `json:"say"`
		Done *bool   `json:"done"`
	}
	switch err := json.Unmarshal(line, &l); {
	case err == nil && l.Say != nil:
		return append(events, agent.Event{Kind: agent.KindText, Text: *l.Say})
	case err == nil && l.Done != nil:
		return append(events, agent.Event{Kind: agent.KindResult, Failed: !*l.Done})
	}
	return append(events, agent.Event{Kind: agent.KindRaw, Text: string(line)})
}

func ExampleDecoder() {
	stream := formatters.NewStream(sayings{}, func(e *agent.Event) error {
		fmt.Printf("%s %q\n", e.Kind, e.Text)
		return nil
	})
	fmt.Fprintln(stream, `{"say":"hello"}`)
	fmt.Fprintln(stream, `{"done":true}`)
	fmt.Println(stream.Close())
	// Output:
	// text "hello"
	// result ""
	// <nil>
}
