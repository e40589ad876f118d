package soak

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A hostile line is one that is not what it should be; kind and text are those
// of its event, or empty where it may be any. Either way it is one event.
type hostile struct{ line, kind, text string }

// hostileBytes are lines that no JSON encoder writes.
var hostileBytes = []hostile{
	{"\x00\xff\xfe", "raw", "\x00\ufffd\ufffd"},
	{"\xff\xfe\x80\xc3", "raw", "\ufffd\ufffd\ufffd\ufffd"},
	{"\xed\xa0\x80 \xf4\x90\x80\x80", "raw", "\ufffd\ufffd\ufffd \ufffd\ufffd\ufffd\ufffd"},
	{`{"type":"item.completed","item":{"type":"agent_message","text":"a` + "\xff\xfe" + `b"}}`, "text", "a\ufffd\ufffdb"},
	{`{"type":"item.completed","item":{"type":"agent_message","text":"a\u0000b\ud800c"}}`, "text", "a\x00b\ufffdc"},
	{`{"type":"item.completed","item":{"type":"agent_message","text":"a` + "\x00" + `b"}}`, "", ""},
	{`{"type":"item.completed","item":{"type":"agent_message","text":"` + "\x1b]0;owned\a\x1b[2J" + `"}}`, "", ""},
	{"a\rb\r", "raw", "a\rb"},
	{`{"type":"item.completed"`, "raw", `{"type":"item.completed"`},
	{`{"type":"item.completed","item":{"type":"agent_message","text":"one"}}{"type":"turn.completed"}`, "", ""},
}

// depth is how deep a bomb nests.
const depth = 100_000

// bombs are lines that take a stack or much memory to parse.
func bombs(runtime string) []hostile {
	list := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	object := strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
	all := []string{
		list, object, list[:depth], object[:5*depth], strings.Repeat(`[{"type":`, depth),
		`{"type":` + list + `}`, `{"type":"result","result":` + object + `}`,
	}
	switch runtime {
	case "lines":
		all = append(all,
			`{"type":"item.completed","item":{"type":"agent_message","text":"words","more":`+list+`}}`,
			`{"type":"item.started","item":{"id":"t","type":"mcp_tool_call","server":"s","tool":"t","arguments":`+object+`}}`,
			`{"type":"item.completed","item":{"id":"t","type":"mcp_tool_call","server":"s","tool":"t","result":`+list+`}}`,
			`{"type":"item.updated","item":{"type":"todo_list","items":`+list+`}}`)
	case "other":
		all = append(all,
			`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":`+object+`}]},"session_id":"s"}`,
			`{"type":"user","message":{"content":[{"tool_use_id":"t","type":"tool_result","content":`+list+`}]},"session_id":"s"}`,
			`{"type":"assistant","message":{"id":"m","content":`+list+`},"session_id":"s"}`)
	}
	var lines []hostile
	for i, line := range all {
		if !large && i%3 != 0 {
			continue // each takes a tenth of a second under the race detector
		}
		lines = append(lines, hostile{line: line})
	}
	return lines
}

// ends are the last lines of a successful run, and words a message.
var ends = map[string]struct{ words, success string }{
	"lines": {`{"type":"item.completed","item":{"type":"agent_message","text":"after"}}`, `{"type":"turn.completed"}`},
	"other": {`{"type":"assistant","message":{"id":"","content":[{"type":"text","text":"after"}]},"session_id":"s"}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s"}`},
}

// Whatever a line is, it is passed on as it is, it becomes an event, and the
// lines after it are read. The last line is cut.
func TestNoLineDisturbsTheNext(t *testing.T) {
	atOnce(t)
	for name, c := range map[string]struct {
		runtime string
		lines   []hostile
		times   int
		few     int // ways, when there is little time
	}{
		"bytes":             {"lines", hostileBytes, size(100_000, 20), 4},
		"JSON bombs":        {"lines", bombs("lines"), size(50, 1), 2},
		"bombs for another": {"other", bombs("other"), size(50, 1), 1},
	} {
		ways := []string{events, text, format, ndjson}
		if !large {
			ways = ways[:c.few]
		}
		for _, way := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				atOnce(t)
				output, half := hostileOutput(c.runtime, c.lines, c.times), ends[c.runtime].success[:20]
				check := checkHostileText(c.times, half)
				if way == events {
					check = checkHostileEvents(c.lines, c.times, half)
				}
				runHostile(t, name, c.runtime, output, way, check)
			})
		}
	}
}

func hostileOutput(runtime string, lines []hostile, times int) Output {
	end := ends[runtime]
	group := Part{Count: int64(times)}
	for _, h := range lines {
		group.Lines = append(group.Lines, plain(h.line+"\n"), plain(end.words+"\n"))
	}
	return Output{group, {1, []Line{plain(end.success + "\n"), plain(end.success[:20])}}}
}

// runHostile runs output in one way; check looks at what the way shows of it.
func runHostile(t *testing.T, name, runtime string, output Output, way string, check func(*bufio.Reader) error) {
	box := newSandbox(t)
	play, err := json.Marshal(output)
	if err != nil {
		t.Fatal(err)
	}
	box.write("play", play)
	args := []string{"run", "--agent", runtime, "--text", "x"}
	if way == format {
		args = []string{"format", "--runtime", runtime}
	} else {
		args = append(args, "--output-format", way, "--", "--play="+box.path("play"))
	}
	cmd := box.command(args...)
	if way == format {
		cmd.Stdin = output.Reader()
	}
	var rest bytes.Buffer
	cmd.Stdout, cmd.Stderr = &rest, &rest
	whole := newComparison(output)
	if way == ndjson {
		cmd.Stdout = whole
	}
	pipe := cmd.StdoutPipe
	if way == text {
		cmd.Stderr, pipe = nil, cmd.StderrPipe
	}
	begun := time.Now()
	if way == ndjson {
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, rest.Bytes())
		}
		if err := whole.end(); err != nil {
			t.Error(err)
		}
	} else {
		if way != text {
			cmd.Stdout = nil
		}
		r, err := pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := check(bufio.NewReader(r)); err != nil {
			r.Close()
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, rest.Bytes())
		}
	}
	s := scenario{name: "hostile " + name}
	s.report(t, way, output.Size(), time.Since(begun), box.peak())
}

// checkHostileEvents checks that each line is one event, in order.
func checkHostileEvents(lines []hostile, times int, half string) func(*bufio.Reader) error {
	return func(r *bufio.Reader) error {
		next := func(what, kind, text string) error {
			line, err := r.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, `{"kind":"`) {
				return fmt.Errorf("in place of the event of %.80q: %.80q, %w", what, line, err)
			}
			if kind == "" {
				return nil
			}
			var e struct{ Kind, Text string }
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Kind != kind || text != "" && e.Text != text {
				return fmt.Errorf("the event of %.80q is %.80q, %w", what, line, err)
			}
			return nil
		}
		for range times {
			for _, h := range lines {
				if err := next(h.line, h.kind, h.text); err != nil {
					return err
				}
				if err := next("the words after "+h.line[:min(len(h.line), 60)], "text", "after"); err != nil {
					return err
				}
			}
		}
		for {
			line, err := r.ReadString('\n')
			switch {
			case err != nil:
				return fmt.Errorf("the half line is not an event: %w", err)
			case line == fmt.Sprintf(`{"kind":"raw","text":%q}`+"\n", half):
				return nil
			}
		}
	}
}

// checkHostileText checks that the words after each line are shown, and that
// nothing that a terminal would obey is.
func checkHostileText(times int, half string) func(*bufio.Reader) error {
	return func(r *bufio.Reader) error {
		words, end := 0, ""
		for {
			line, err := r.ReadString('\n')
			if i := strings.IndexFunc(line, func(c rune) bool { return c < ' ' && c != '\t' && c != '\n' || c == 0x7f }); i >= 0 {
				return fmt.Errorf("a control character is shown: %.80q", line[i:])
			}
			if line == "after\n" {
				words++
			}
			if line != "" {
				end = line
			}
			if err != nil {
				break
			}
		}
		if words%times != 0 || words < times || strings.TrimSpace(end) != half {
			return fmt.Errorf("the words are shown %d times, the last line is %.80q", words, end)
		}
		return nil
	}
}
