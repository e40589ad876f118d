package runs

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

func TestReadEvents(t *testing.T) {
	t.Parallel()
	code := 1
	want := []*Event{
		{Time: start, Event: agent.Event{Kind: KindMessage, Text: "do it"}, Attachments: agent.AttachmentInfos([]agent.Attachment{{Name: "a\u202eb.txt", Data: []byte("x")}})},
		{Time: start.Add(time.Second), Event: agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "1", Name: "shell", Input: []byte(`{"command":"ls"}`)}}},
		{Time: start.Add(1500 * time.Millisecond), Event: agent.Event{Kind: agent.KindToolResult, Failed: true,
			Tool: &agent.Tool{ID: "1", Output: agent.Plain(strings.Repeat("long\n", 50_000)), ExitCode: &code}}},
		{Time: start.Add(2 * time.Second), Event: agent.Event{Kind: agent.KindResult, Text: "done", Usage: &agent.Usage{Input: 1}}},
	}
	var text []byte
	for _, entry := range want {
		text = append(entry.AppendJSON(text), '\n')
	}
	read := func(text string) (got []*Event, err error) {
		err = ReadEvents(iotest.HalfReader(strings.NewReader(text)), func(e *Event) error { got = append(got, e); return nil })
		return got, err
	}
	got, err := read(string(text))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(agent.Payload{})); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
	// The run is being written or was cut off.
	for _, cut := range []int{1, 2, 30, len(text) / 2} {
		part := string(text[:len(text)-cut])
		if got, err := read(part); len(got) != strings.Count(part, "\n") || err != nil {
			t.Errorf("%d entries, %v", len(got), err)
		}
	}
	got, err = read("\n" + string(text) + "{\"time\":1}\nnothing\n{}\n" + string(text))
	if len(got) != 2*len(want) || !errors.Is(err, ErrDamaged) || !strings.HasSuffix(err.Error(), "4 of 12, line 1 first") {
		t.Errorf("%d entries, %v", len(got), err)
	}
	enough := errors.New("enough")
	n := 0
	if err := ReadEvents(strings.NewReader(string(text)), func(*Event) error { n++; return enough }); err != enough || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if err := ReadEvents(iotest.ErrReader(enough), func(*Event) error { return nil }); err != enough {
		t.Error(err)
	}
	if got, err := read(""); len(got) != 0 || err != nil {
		t.Error(got, err)
	}
}

// A line of any length needs no more memory than the longest entry.
func TestReadEventsSkipsLongLines(t *testing.T) {
	t.Parallel()
	const most = 100 << 10
	entry := Event{Time: start, Event: agent.Event{Kind: agent.KindText, Text: "short"}}
	short := string(entry.AppendJSON(nil)) + "\n"
	entry.Text = ""
	entry.Text = strings.Repeat("x", most-1-len(entry.AppendJSON(nil))-len(`,"text":""`))
	longest := string(entry.AppendJSON(nil)) + "\n"
	entry.Text += "x"
	tooLong := string(entry.AppendJSON(nil)) + "\n"
	if len(longest) != most {
		t.Fatal(len(longest))
	}
	endless := strings.Repeat("x", 10*most)
	for text, want := range map[string]struct {
		entries int
		damage  string
	}{
		longest + short:                      {2, ""},
		short + tooLong + short:              {2, "1 of 3, line 2 first"},
		short + endless + "\n" + short + "x": {2, "1 of 3, line 2 first"},
		short + endless:                      {1, "1 of 2, line 2 first"},
	} {
		n := 0
		err := readEvents(strings.NewReader(text), most, maxDamage, func(*Event) error { n++; return nil })
		if n != want.entries || (err == nil) != (want.damage == "") || err != nil && !strings.HasSuffix(err.Error(), want.damage) {
			t.Errorf("%.20q: %d entries, %v, want %d, %s", text, n, err, want.entries, want.damage)
		}
	}
}
