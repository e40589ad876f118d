package sessiontest_test

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/session/sessiontest"
)

func ExampleStart() {
	steps, err := sessiontest.Transcript(strings.NewReader(`
{"dir": ">", "msg": {"id": 1, "method": "hello"}}
{"dir": "!", "line": "a note"}
{"dir": "<", "msg": {"id": 1, "result": {}}}
`[1:]))
	if err != nil {
		fmt.Println(err)
		return
	}
	peer := sessiontest.Start(steps)
	t := peer.Transport()
	fmt.Fprintln(t.Input, `{"id":42,"method":"hello"}`)
	line, err := bufio.NewReader(t.Output).ReadString('\n')
	fmt.Print(line, err, "\n")
	if err := t.Input.Close(); err != nil {
		fmt.Println(err)
	}
	<-peer.Done()
	fmt.Println(peer.Sent())
	// Output:
	// {"id":42,"result":{}}
	// <nil>
	// [{"id":42,"method":"hello"}]
}

func expect(line string) sessiontest.Step {
	return sessiontest.Step{Kind: sessiontest.Expect, Line: line}
}
func say(line string) sessiontest.Step { return sessiontest.Step{Kind: sessiontest.Say, Line: line} }

// talk sends lines to a peer and returns what it says until its end.
func talk(t *testing.T, steps []sessiontest.Step, lines ...string) (string, *sessiontest.Peer) {
	t.Helper()
	peer := sessiontest.Start(steps)
	transport := peer.Transport()
	go func() {
		defer transport.Input.Close()
		for _, line := range lines {
			if _, err := io.WriteString(transport.Input, line+"\n"); err != nil {
				return
			}
		}
	}()
	said, err := io.ReadAll(transport.Output)
	if err != nil {
		t.Error(err)
	}
	<-peer.Done()
	return string(said), peer
}

func TestPeer(t *testing.T) {
	t.Parallel()
	const control = `{"type":"control_request","request_id":"%s","request":{"subtype":"%s"}}`
	ask, other := fmt.Sprintf(control, "r1", "interrupt"), fmt.Sprintf(control, "r1", "initialize")
	for name, test := range map[string]struct {
		steps []sessiontest.Step
		lines []string
		said  string
	}{
		"lines in another order":     {[]sessiontest.Step{expect(`{"method":"a"}`), say("1"), expect(`{"method":"b"}`), say("2")}, []string{`{"method":"b"}`, `{"method":"a"}`}, "1\n2\n"},
		"IDs of requests":            {[]sessiontest.Step{expect(`{"id":1,"method":"a"}`), expect(`{"id":2,"method":"b"}`), say(`{"id":2,"result":1}`), say(`{"id":1,"error":{}}`)}, []string{`{"id":"x","method":"a"}`, `{"id":9,"method":"b"}`}, `{"id":9,"result":1}` + "\n" + `{"error":{},"id":"x"}` + "\n"},
		"requests keep their IDs":    {[]sessiontest.Step{expect(`{"id":1,"method":"a"}`), say(`{"id":1,"method":"q"}`), expect(`{"id":1,"result":{}}`), say("asked")}, []string{`{"id":7,"method":"a"}`, `{"id":1,"result":{"x":1}}`}, `{"id":1,"method":"q"}` + "\nasked\n"},
		"control requests":           {[]sessiontest.Step{expect(ask), say(`{"type":"control_response","response":{"subtype":"success","request_id":"r1"}}`)}, []string{fmt.Sprintf(control, "mine", "interrupt")}, `{"response":{"request_id":"mine","subtype":"success"},"type":"control_response"}` + "\n"},
		"another control request":    {[]sessiontest.Step{expect(ask), say("1")}, []string{other}, ""},
		"types":                      {[]sessiontest.Step{expect(`{"type":"user"}`), say("1"), expect(`plain`), say("2")}, []string{`plain`, `{"type":"user","message":{}}`}, "1\n2\n"},
		"answers to requests":        {[]sessiontest.Step{expect(`{"type":"control_response","response":{"request_id":"q"}}`), say("1")}, []string{`{"type":"control_response","response":{"request_id":"q","response":{}}}`}, "1\n"},
		"an answer to another":       {[]sessiontest.Step{expect(`{"type":"control_response","response":{"request_id":"q"}}`), say("1")}, []string{`{"type":"control_response","response":{"request_id":"p"}}`}, ""},
		"half a line":                {[]sessiontest.Step{{Kind: sessiontest.Write, Line: `{"id"`}, {Kind: sessiontest.Die}, say("never")}, nil, `{"id"`},
		"a pause":                    {[]sessiontest.Step{{Kind: sessiontest.Pause, For: time.Hour}, say("1")}, nil, "1\n"},
		"nothing that is waited for": {[]sessiontest.Step{expect(`{"method":"a"}`), say("1")}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				said, peer := talk(t, test.steps, test.lines...)
				if said != test.said {
					t.Errorf("it says %q", said)
				}
				if sent := peer.Sent(); !slices.Equal(sent, test.lines) && test.steps[0].Kind == sessiontest.Expect {
					t.Errorf("sent %q", sent)
				}
			})
		})
	}
}

func TestDeafPeer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := sessiontest.Start([]sessiontest.Step{expect(`{"method":"a"}`), {Kind: sessiontest.Deafen}})
		input := peer.Transport().Input
		written := make(chan int)
		go func() {
			for n := 0; ; n++ {
				if _, err := io.WriteString(input, `{"method":"a"}`+"\n"); err != nil {
					written <- n
					return
				}
				synctest.Wait()
			}
		}()
		time.Sleep(time.Hour)
		peer.Stop()
		if n := <-written; n != 2 {
			t.Errorf("it reads %d lines", n)
		}
		<-peer.Done()
	})
}

func TestFaultsLeaveTheScriptAlone(t *testing.T) {
	t.Parallel()
	steps := []sessiontest.Step{expect("a"), say("b"), expect("c"), say("d")}
	before := slices.Clone(steps)
	for _, f := range sessiontest.Faults() {
		for i := range steps {
			if changed := f.Apply(steps, i); slices.Equal(changed, before) && steps[i].Kind == sessiontest.Say && i > 0 {
				t.Errorf("%s changes nothing at step %d", f.Name, i)
			}
			if !slices.Equal(steps, before) {
				t.Fatalf("%s changes the script at step %d", f.Name, i)
			}
		}
	}
}

func TestInvalidTranscript(t *testing.T) {
	t.Parallel()
	if steps, err := sessiontest.Transcript(strings.NewReader("{\"dir\":\"<\",\"line\":\"x\"}\nnot JSON\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v, %v", steps, err)
	}
	if peer := sessiontest.Start(nil); peer.Transport().Input.Close() != nil {
		t.Error("it cannot be closed")
	}
}
