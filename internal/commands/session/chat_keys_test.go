package session

import (
	"io"
	"os"
	"testing"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
)

// What the terminal holds when a request is drawn was not typed to answer it.
func TestKeysTypedBeforeARequest(t *testing.T) {
	t.Parallel()
	in, typist, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	k := newKeys(in, nil, nil)
	for _, text := range []string{"y\r", "a", "n\r"} {
		io.WriteString(typist, text)
		drawn := k.draw()
		for _, want := range []byte(text) {
			press, ok, _ := k.next()
			if !ok || press.key != want || press.drawn >= drawn {
				t.Fatalf("%q of %q: %+v, %t; request %d", want, text, press, ok, drawn)
			}
		}
	}
	drawn := k.draw()
	typist.Close()
	for {
		press, ok, ended := k.next()
		if ok {
			t.Errorf("%+v was not typed", press)
		}
		if ended { // and nothing reads the terminal any more
			break
		}
		<-k.more
	}
	if k.draw() <= drawn {
		t.Error("the number of a request is used again")
	}
}

// The rest of an answer whose request is over is neither an answer to the next request nor
// a message.
func TestRestOfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after string // the next request
		answer        string
		later         string
	}{
		"ends with the next request": {"se", "cret\ry\r", "accept", ""},
		"ends before it":             {"secret\rnext\r", "n\r", "decline", "next\r"},
		"is left to it":              {"secret", "\ry\r", "accept", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, typist, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			defer typist.Close()
			reply := make(chan chatReply, 1)
			c := &chat{keys: newKeys(in, nil, nil), screen: cmdline.NewScreen(io.Discard)}
			turn := &chatTurn{open: &chatRequest{}, line: []byte("my ")}
			turn.close()
			io.WriteString(typist, test.before)
			c.keys.draw() // takes what was typed
			c.takeKeys(t.Context(), turn)
			turn.open = &chatRequest{reply: reply}
			turn.drawn = c.keys.draw()
			io.WriteString(typist, test.after)
			c.keys.draw()
			c.takeKeys(t.Context(), turn)
			select {
			case got := <-reply:
				if string(got.decision) != test.answer {
					t.Errorf("the answer is %q, want %q", got.decision, test.answer)
				}
			default:
				t.Error("no answer")
			}
			if got := string(c.keys.ahead); got != test.later {
				t.Errorf("the next message is %q, want %q", got, test.later)
			}
		})
	}
}

func TestAnswersInAChat(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"y": "accept", "Yes": "accept", " y ": "accept", "a": "accept_for_session", "n": "decline", "no": "decline", "c": "cancel",
		"": "", "yy": "", "carry": "", "?y": "", "y n": "",
	} {
		if got := string(decisionFor(line)); got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}
