package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/jsonrpc"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func ExampleClient() {
	server := sessiontest.Start([]sessiontest.Step{
		expect(`{"id":1,"method":"initialize"}`), say(`{"id":1,"result":{}}`), expect(`{"method":"initialized"}`),
		expect(`{"id":2,"method":"thread/start"}`), say(`{"id":2,"result":{"thread":{"id":"thread-1"},"model":"m-1"}}`),
		expect(`{"id":3,"method":"turn/start"}`), say(`{"id":3,"result":{"turn":{"id":"turn-1"}}}`),
		say(`{"method":"turn/completed","params":{"threadId":"thread-1","turn":{"id":"turn-1","status":"completed"}}}`),
	})
	ctx := context.Background()
	over := make(chan string, 1)
	client := appserver.Connect(server.Transport(), appserver.Callbacks{
		Notification: func(n appserver.Notification) { over <- n.Method },
	})
	if err := client.Initialize(ctx, appserver.ClientInfo{Name: "example", Version: "1"}); err != nil {
		fmt.Println(err)
		return
	}
	thread, err := client.StartThread(ctx, appserver.ThreadParams{Workdir: "/project", Sandbox: "read-only"})
	if err != nil {
		fmt.Println(err)
		return
	}
	turn, err := client.StartTurn(ctx, thread.ID, "Hello")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(thread.ID, thread.Model, turn, <-over)
	if err := client.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(client.Err())
	// Output:
	// thread-1 m-1 turn-1 turn/completed
	// <nil>
}

func ExampleEngine() {
	server := sessiontest.Start(append(handshake(),
		expect(`{"id":3,"method":"turn/start"}`), say(`{"id":3,"result":{"turn":{"id":"1"}}}`), say(text1), say(ended1)))
	ctx := context.Background()
	e := &appserver.Engine{Info: appserver.ClientInfo{Name: "example", Version: "1"}}
	s, err := session.Open(ctx, "my-runtime", e, server, server.Transport(), engine.Start{Workdir: "/project"}, session.Options{
		Events: func(e *agent.Event) error { fmt.Println(e.Kind); return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop(ctx, "done")
	result, err := s.Send(session.Message{Text: "Hello"}).Wait(ctx)
	fmt.Println(result.Text, err)
	// Output:
	// text
	// result
	// one <nil>
}

func TestUninitialized(t *testing.T) {
	t.Parallel()
	peer := sessiontest.Start(transcript(t, "uninitialized"))
	client := appserver.Connect(peer.Transport(), appserver.Callbacks{})
	_, err := client.StartThread(t.Context(), appserver.ThreadParams{})
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != -32600 || err.Error() != "thread/start: Not initialized (-32600)" {
		t.Errorf("%v", err)
	}
	peer.Stop()
	<-client.Done()
	if _, err := client.Call(t.Context(), "thread/list", nil); err == nil {
		t.Error("a server that has ended is asked")
	}
}

// TestInvalidAnswers are errors, not waited for.
func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ line, want string }{
		"nothing":             {`{"id":1}`, "thread/start: the answer is not understood: unexpected end of JSON input"},
		"null":                {`{"id":1,"result":null}`, "thread/start: the answer names no thread"},
		"no thread":           {`{"id":1,"result":{}}`, "thread/start: the answer names no thread"},
		"another type":        {`{"id":1,"result":{"thread":7}}`, "thread/start: the answer is not understood: "},
		"an error of no form": {`{"id":1,"error":"no"}`, `thread/start: "no" (0)`},
		"the end":             {"", "thread/start: the agent's output has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				end := say(test.line)
				if test.line == "" {
					end = sessiontest.Step{Kind: sessiontest.Die}
				}
				peer := sessiontest.Start([]sessiontest.Step{expect(`{"id":1,"method":"thread/start"}`), end})
				defer peer.Stop()
				client := appserver.Connect(peer.Transport(), appserver.Callbacks{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if thread, err := client.StartThread(ctx, appserver.ThreadParams{}); err == nil || !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("%+v, %v", thread, err)
				}
			})
		})
	}
}

// TestApprovalRequestsOfTheServer are refused or declined without callbacks.
func TestApprovalRequestsOfTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := sessiontest.Start([]sessiontest.Step{
			say(`{"id":0,"method":"item/fileChange/requestApproval","params":{}}`),
			expect(`{"id":0,"result":{}}`),
			say(`{"id":"a","method":"item/tool/requestUserInput","params":{}}`),
			expect(`{"id":"a"}`),
			say(`{"id":"b","method":"item/tool/call","params":{}}`),
			expect(`{"id":"b"}`),
			say(`{"id":null,"method":"a/notification"}`),
			say(`{"id":null,"error":{"code":-32700,"message":"parse error"}}`),
		})
		var methods, unknown []string
		client := appserver.Connect(peer.Transport(), appserver.Callbacks{
			Notification: func(n appserver.Notification) { methods = append(methods, n.Method) },
			Unknown:      func(line []byte, _ bool, _ int64) { unknown = append(unknown, string(line)) },
		})
		synctest.Wait()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		<-client.Done()
		if got := fmt.Sprint(peer.Sent()); got != `[{"id":0,"result":{"decision":"decline"}} {"id":"a","result":{"answers":{}}} {"id":"b","error":{"code":-32601,"message":"not supported by this client: item/tool/call"}}]` {
			t.Errorf("sent %s", got)
		}
		if len(methods) != 1 || len(unknown) != 1 {
			t.Errorf("%q, %q", methods, unknown)
		}
	})
}

func TestCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := sessiontest.Start([]sessiontest.Step{expect(`{"id":1,"method":"model/list"}`), expect(`{"id":2,"method":"thread/list"}`), say(`{"id":2,"result":{"n":2}}`), say(`{"id":1,"result":{"n":1}}`)})
		defer peer.Stop()
		client := appserver.Connect(peer.Transport(), appserver.Callbacks{})
		first := make(chan string)
		go func() {
			result, err := client.Call(t.Context(), "model/list", json.RawMessage(`{"limit":1}`))
			first <- fmt.Sprintf("%s %v", result, err)
		}()
		result, err := client.Call(t.Context(), "thread/list", nil)
		if got := fmt.Sprintf("%s %v", result, err) + <-first; got != `{"n":2} <nil>{"n":1} <nil>` {
			t.Error(got)
		}
	})
}

// Images are parts of the message, after its text.
func TestImagesAreInputs(t *testing.T) {
	t.Parallel()
	peer := sessiontest.Start(append(handshake(), expect(startTurn), say(turn1), say(begun1), say(text1), say(ended1)))
	start := engine.Start{Attachments: agent.ImageTypes()}
	s, err := session.Open(t.Context(), "test", &appserver.Engine{}, peer, peer.Transport(), start, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background(), "")
	image := agent.Attachment{Name: "a.png", Data: []byte("\x89PNG\r\n\x1a\n")}
	if _, err := s.Send(session.Message{Text: "what?", Attachments: []agent.Attachment{image}}).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = `"input":[{"type":"text","text":"Attached: a.png (image/png)\n\nwhat?"},{"type":"image","url":"data:image/png;base64,iVBORw0KGgo="}]`
	if sent := strings.Join(peer.Sent(), "\n"); !strings.Contains(sent, want) {
		t.Errorf("the server got %s", sent)
	}
}
