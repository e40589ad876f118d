package session

import (
	"io"
	"os"
	"strings"
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
	if left := awaitEnd(k); len(left) > 0 {
		t.Errorf("%q was not typed", left)
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
		first, second string // what is typed before and after the next request
		answer        string
		later         string
	}{
		"ends with the next request": {"se", "cret\ry\r", "accept", ""},
		"ends before it":             {"secret\rnext\r", "n\r", "decline", "next\r"},
		"is left to it":              {"secret", "\ry\r", "accept", ""},
		"ends by Ctrl-C":             {"secret", "\x03", "cancel", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, write := newChat(t, io.Discard)
			turn := &chatTurn{open: &chatRequest{}, line: []byte("my ")}
			turn.close()
			write(test.first)
			c.keys.draw() // takes it
			c.takeKeys(t.Context(), turn)
			reply := make(chan chatReply, 1)
			turn.open = &chatRequest{reply: reply}
			turn.drawn = c.keys.draw()
			write(test.second)
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
			if got := string(c.keys.ahead); got != test.later || turn.cut {
				t.Errorf("the next message is %q, want %q; cut: %t", got, test.later, turn.cut)
			}
		})
	}
}

// The rest of an answer whose turn has ended is not the next message.
func TestAnswerAfterTheTurn(t *testing.T) {
	t.Parallel()
	var write func(string)
	var shown strings.Builder
	c, write := newChat(t, writer(func(b []byte) {
		shown.Write(b)
		if strings.Contains(string(b), "too late") {
			write("cret\rnext\r")
		}
	}))
	turn := &chatTurn{open: &chatRequest{reply: make(chan chatReply, 1)}}
	write("se")
	c.keys.draw()
	if next := c.dropAnswer(t.Context(), turn); !next || turn.cut || string(c.keys.ahead) != "next\r" || strings.Contains(shown.String(), "cret") {
		t.Errorf("the next message is %q, the conversation continues: %t; %q", c.keys.ahead, next, shown.String())
	}
}

// newChat returns a chat that reads a pipe, and a function that types there.
func newChat(t *testing.T, screen io.Writer) (*chat, func(text string)) {
	in, typist, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &chat{keys: newKeys(in, nil, nil), screen: cmdline.NewScreen(screen)}
	t.Cleanup(func() {
		typist.Close()
		awaitEnd(c.keys)
		in.Close()
	})
	return c, func(text string) { io.WriteString(typist, text) }
}

// awaitEnd returns the keys that are left once nothing reads the terminal any more.
func awaitEnd(k *keys) (left []byte) {
	for {
		press, ok, ended := k.next()
		switch {
		case ok:
			left = append(left, press.key)
		case ended:
			return left
		default:
			<-k.more
		}
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
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
