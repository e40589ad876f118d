package acpagent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

// line returns a request as a line.
func line(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
}

// prompt returns a prompt of text as a line.
func prompt(id int, session, text string) string {
	return line(id, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text))
}

var hello = line(0, "initialize", `{"protocolVersion":1,"clientCapabilities":{"elicitation":{"form":{}}}}`)

// raw is a client that writes lines.
type raw struct {
	t      *testing.T
	input  *io.PipeWriter
	output *bufio.Reader
	closer *io.PipeReader
	ended  chan error
}

func (b *bench) connectRaw(ctx context.Context) *raw {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	r := &raw{b.t, toServer, bufio.NewReader(fromServer), fromServer, make(chan error, 1)}
	go func() {
		err := b.server.Serve(ctx, in, out)
		out.Close()
		in.Close()
		r.ended <- err
		close(r.ended)
	}()
	b.t.Cleanup(func() {
		toServer.Close()
		fromServer.Close()
		<-r.ended
	})
	return r
}

func (r *raw) send(lines string) {
	r.t.Helper()
	if _, err := io.WriteString(r.input, lines); err != nil {
		r.t.Fatal(err)
	}
}

// message is a line of the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// next returns the next line of the server.
func (r *raw) next() (m message) {
	r.t.Helper()
	text, err := r.output.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	return m
}

// until returns the next line that ok holds for.
func (r *raw) until(ok func(message) bool) message {
	r.t.Helper()
	for {
		if m := r.next(); ok(m) {
			return m
		}
	}
}

// opened starts a session and returns its ID.
func (r *raw) opened(workdir string) string {
	r.t.Helper()
	r.send(hello + line(1, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, workdir)))
	var got struct {
		SessionID string `json:"sessionId"`
	}
	m := r.until(func(m message) bool { return string(m.ID) == "1" })
	if json.Unmarshal(m.Result, &got) != nil || got.SessionID == "" {
		r.t.Fatalf("%s", m.Result)
	}
	return got.SessionID
}

// Each wrong message is answered with one error, and starts nothing.
func TestHostileMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	r := b.connectRaw(t.Context())
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.send(line(1, "session/new", `{}`))
	if m := r.next(); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("before it is greeted: %+v", m)
	}
	r.send(hello)
	if m := r.next(); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	long := strings.Repeat("x", 17<<20)
	for _, test := range []struct {
		line string
		code int
		text string
	}{
		{"nonsense\n", -32700, "not valid JSON"},
		{"{\n", -32700, "not valid JSON"},
		{"[1,2]\n", -32600, "not a request"},
		{"{}\n", -32600, "not a request"},
		{`"text"` + "\n", -32600, "not a request"},
		{long + "\n", -32700, "too long"},
		{line(2, "session/new", `{"cwd":"`+long+`"}`), -32602, "too long"},
		{line(3, "session/fly", `{}`), -32601, "unknown method"},
		{line(4, "session/new", `[]`), -32602, "not understood"},
		{line(5, "session/new", `{"mcpServers":[]}`), -32602, "cwd is missing"},
		{line(6, "session/new", `{"cwd":"a/b","mcpServers":[]}`), -32602, "not an absolute path"},
		{line(7, "session/new", `{"cwd":"/does/not/exist","mcpServers":[]}`), -32602, "no such file"},
		{line(8, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, file)), -32602, "not a directory"},
		{line(9, "session/new", `{"cwd":"/","mcpServers":[{"name":"x","command":"y","url":"z"}]}`), -32602, "MCP server \"x\""},
		{line(9, "session/new", `{"cwd":"/","mcpServers":[{"name":"!","command":"y"}]}`), -32602, "its name"},
		{line(9, "session/new", `{"cwd":"/","mcpServers":[{"name":"x","type":"tcp","url":"http://x"}]}`), -32602, "is not one of"},
		{line(10, "session/new", `{"cwd":"/","additionalDirectories":["x"]}`), -32602, "not an absolute path"},
		{line(11, "session/prompt", `{"sessionId":"x","prompt":[{"type":"text","text":"hi"}]}`), -32002, "not open"},
		{line(12, "session/load", `{"sessionId":"../x","cwd":"/"}`), -32002, "no session"},
		{line(13, "session/set_mode", `{"sessionId":"x","modeId":"read"}`), -32002, "not open"},
		{line(14, "session/close", `{"sessionId":7}`), -32602, "not understood"},
		{line(15, "session/list", `{"cwd":"x"}`), -32602, "not an absolute path"},
		{line(16, "session/list", `{"cursor":"x"}`), -32602, "not known any more"},
		{`{"jsonrpc":"2.0","id":17,"method":"session/new","params":{"cwd":"/","mcpSer` + "\n", -32602, "cannot be read"},
	} {
		r.send(test.line)
		m := r.next()
		if m.Error == nil || m.Error.Code != test.code || !strings.Contains(m.Error.Message, test.text) {
			t.Errorf("%.80s: %+v %s", test.line, m.Error, m.Result)
		}
	}
	// Unknown notifications and late answers are ignored.
	r.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}` + "\n" + `{"jsonrpc":"2.0","method":"x"}` + "\n" +
		`{"jsonrpc":"2.0","id":99,"result":{}}` + "\n\n" + line(18, "session/list", `{}`))
	if m := r.next(); string(m.ID) != "18" || string(m.Result) != `{"sessions":[]}` {
		t.Errorf("sessions after all that: %s %s", m.ID, m.Result)
	}
	r.input.Close()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	if entries, _, err := b.store.List(control.Filter{}); len(entries) > 0 || err != nil {
		t.Errorf("%d sessions, %v", len(entries), err)
	}
}

// Blocks of a prompt become its text; those that were not offered are refused.
func TestPrompts(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	r := b.connectRaw(t.Context())
	id := r.opened(b.workdir)
	for i, test := range []struct{ blocks, want, refused string }{
		{`{"type":"text","text":"a "},{"type":"text","text":"b"}`, "a b", ""},
		{`{"type":"text","text":"see "},{"type":"resource_link","name":"x.go","uri":"file:///w/x.go"}`, "see [@x.go](/w/x.go)", ""},
		{`{"type":"text","text":"see"},{"type":"resource","resource":{"uri":"file:///w/\"x","text":"line"}}`, "see\n<context uri=\"file:///w/%22x\">\nline\n</context>", ""},
		{`{"type":"text","text":"see "},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}`, "Attached: image-1.png (image/png)\n\nsee [image-1.png] +image-1.png:8", ""},
		{`{"type":"resource","resource":{"uri":"file:///w/a.png","blob":"iVBORw0KGgo="}}`, "Attached: a.png (image/png)\n\n[a.png] +a.png:8", ""},
		{`{"type":"image","data":"","mimeType":"image/png"}`, "", "no data"},
		{`{"type":"image","data":"!","mimeType":"image/png"}`, "", "not base64"},
		{`{"type":"resource","resource":{"uri":"x.pdf","blob":"JVBERi0xLjc="}}`, "", "application/pdf"},
		{`{"type":"audio","data":"","mimeType":"audio/wav"}`, "", "not offered"},
		{``, "", "empty"},
	} {
		r.send(line(10+i, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[%s]}`, id, test.blocks)))
		var said strings.Builder
		m := r.until(func(m message) bool {
			var p struct {
				Update struct {
					Content struct {
						Text string `json:"text"`
					} `json:"content"`
				} `json:"update"`
			}
			_ = json.Unmarshal(m.Params, &p)
			said.WriteString(p.Update.Content.Text)
			return string(m.ID) == fmt.Sprint(10+i)
		})
		switch {
		case test.refused != "" && (m.Error == nil || !strings.Contains(m.Error.Message, test.refused)):
			t.Errorf("%s: %+v", test.blocks, m)
		case test.refused == "" && !strings.HasPrefix(said.String(), "echo "+test.want):
			t.Errorf("%s becomes %q, want %q", test.blocks, said.String(), test.want)
		}
	}
}

// When the client goes away, whatever it does and whatever the agent does, the sessions
// end.
func TestHostileEnds(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(r *raw, end context.CancelCauseFunc) (want string){
		"end of input": func(r *raw, _ context.CancelCauseFunc) string { r.input.Close(); return "" },
		"broken pipe": func(r *raw, _ context.CancelCauseFunc) string {
			r.closer.Close()
			r.send(line(8, "session/list", `{}`))
			return "closed pipe"
		},
		"signal": func(_ *raw, end context.CancelCauseFunc) string { end(fmt.Errorf("terminated")); return "terminated" },
		"no reading": func(r *raw, _ context.CancelCauseFunc) string {
			r.send(line(8, "session/list", `{}`))
			return "does not read"
		},
	} {
		for _, prompt := range []string{"wait", "hang", "ask", ""} {
			t.Run(name+" "+prompt, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, "stub")
				if name == "no reading" {
					b.server.ReadTimeout = 2 * time.Second
				}
				ctx, end := context.WithCancelCause(context.Background())
				defer end(nil)
				r := b.connectRaw(ctx)
				id := r.opened(b.workdir)
				if prompt != "" {
					r.send(line(7, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, prompt)))
					r.next()
				}
				want := leave(r, end)
				if err := <-r.ended; want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("Serve: %v, want %q", err, want)
				}
				e, err := b.store.Get(id)
				if err != nil || !e.State.Ended() {
					t.Errorf("the session is %s, %v", e.State, err)
				}
				if running, err := e.Running(); running || err != nil {
					t.Errorf("its agent is running: %v, %v", running, err)
				}
			})
		}
	}
}

// A request can be cancelled by itself.
func TestCancelRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	r := b.connectRaw(t.Context())
	id := r.opened(b.workdir)
	r.send(line(7, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"wait"}]}`, id)))
	r.next()
	r.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}` + "\n")
	if m := r.until(func(m message) bool { return string(m.ID) == "7" }); m.Error == nil || m.Error.Code != -32800 {
		t.Errorf("%+v %s", m.Error, m.Result)
	}
}

// A question reaches the client as a form, and is declined visibly by a client without
// forms.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ hello, answer, want string }{
		"answered": {hello, `{"action":"accept","content":{"answer1":"blue","answer2":"Bo"}}`, `{"answers":[["blue"],["Bo"]]}`},
		"wrong":    {hello, `{"action":"accept","content":{"answer1":"green","answer2":"Bo"}}`, `{"decision":"decline"}`},
		"declined": {hello, `{"action":"decline"}`, `{"decision":"decline"}`},
		"no forms": {line(0, "initialize", `{"protocolVersion":1}`), "", "cannot show questions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "stub")
			r := b.connectRaw(t.Context())
			id := r.opened(b.workdir)
			r.send(test.hello)
			r.until(func(m message) bool { return string(m.ID) == "0" })
			r.send(line(7, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"question"}]}`, id)))
			var said strings.Builder
			r.until(func(m message) bool {
				said.Write(m.Params)
				if m.Method == "elicitation/create" {
					if p := string(m.Params); !strings.Contains(p, `"oneOf":[{"const":"red","title":"red"}`) || !strings.Contains(p, `"required":["answer1","answer2"]`) {
						t.Errorf("the form is %s", p)
					}
					r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, test.answer))
				}
				return string(m.ID) == "7"
			})
			if got := strings.ReplaceAll(said.String(), `\"`, `"`); !strings.Contains(got, test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// The server refuses to start sessions that the client cannot name.
func TestStartIsChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	b.server.Start.Name = "x"
	if err := b.server.Serve(t.Context(), strings.NewReader(""), io.Discard); agent.KindOf(err) != "usage" {
		t.Error(err)
	}
}

// FuzzServe feeds the server with lines; it answers or ignores each, and ends.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{hello, line(1, "session/new", `{"cwd":"/x"}`), line(2, "session/list", `{}`), `{"method":"session/cancel"}`, "{", "[]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		b := newBench(t, "missing") // which starts nothing
		if err := b.server.Serve(t.Context(), strings.NewReader(hello+input), io.Discard); err != nil {
			t.Error(err)
		}
	})
}
