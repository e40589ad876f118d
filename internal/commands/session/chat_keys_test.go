package session

import (
	"io"
	"os"
	"testing"
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
