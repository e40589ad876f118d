package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/testpages"
)

// conversation is the agent's side of a session that speaks lines of JSON.
type conversation struct {
	out       io.Writer
	sessionID string
	turns     int
	open      string // the request that is open
	busy      bool   // a turn is running
}

// said is a line of the client.
type said struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
	Response struct {
		RequestID string `json:"request_id"`
		Response  struct {
			Behavior  string            `json:"behavior"`
			Interrupt bool              `json:"interrupt"`
			Changes   []json.RawMessage `json:"updatedPermissions"`
			Input     struct {
				Answers map[string]string `json:"answers"`
			} `json:"updatedInput"`
		} `json:"response"`
	} `json:"response"`
	Message struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"message"`
}

// converse holds a session until its input ends. Without lines, it answers the
// whole input as a run does.
func converse(in io.Reader, out io.Writer) error {
	if slices.Contains(os.Args, "--version") {
		_, err := fmt.Fprintln(out, "1.0.0")
		return err
	}
	c := &conversation{out: out, sessionID: "5e551011-0000-4000-8000-000000000001"}
	for _, arg := range os.Args {
		if id, ok := strings.CutPrefix(arg, "--resume="); ok {
			c.sessionID = id
		}
	}
	if !slices.Contains(os.Args, "--input-format") {
		if _, err := io.Copy(io.Discard, in); err != nil {
			return err
		}
		c.say("hello")
		c.end("hello")
		return nil
	}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var s said
		if err := json.Unmarshal(scanner.Bytes(), &s); err != nil {
			return err
		}
		switch s.Type {
		case "control_request":
			fmt.Fprintf(out, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`+"\n", s.RequestID)
			if s.Request.Subtype == "interrupt" && c.busy {
				c.fail("interrupted")
			}
		case "control_response":
			c.answered(&s)
		case "user":
			c.answer(strings.TrimSpace(s.Message.Content[0].Text))
		}
	}
	return scanner.Err()
}

// answer answers a message: it echoes all but these.
//
//	may I            asks for permission and prints the answer
//	ask me           asks two questions and prints the answers
//	ask one question asks the first of them; from the tests of the pages
//	work             runs until it is interrupted
//	fail TEXT        fails
//	die              exits
//	many N           says N things
//	file FILE        makes FILE, then runs until it is interrupted
//	tests            asks for permission; from the pages
func (c *conversation) answer(text string) {
	c.turns++
	c.busy = true
	fmt.Fprintf(c.out, `{"type":"system","subtype":"init","session_id":%q,"model":"model-x"}`+"\n", c.sessionID)
	word, rest, _ := strings.Cut(text, " ")
	switch {
	case text == "may I" || strings.Contains(text, "tests"):
		c.open = fmt.Sprintf("q%d", c.turns)
		fmt.Fprintf(c.out, `{"type":"control_request","request_id":%q,"request":{"subtype":"can_use_tool","tool_name":"Bash",`+
			`"tool_use_id":"t","input":{"command":"make test"},"permission_suggestions":[{"type":"addRules","rules":[],"behavior":"allow","destination":"session"}]}}`+"\n", c.open)
	case text == "ask me" || text == testpages.AskOne:
		questions := `{"question":"Which way?","header":"Way","options":[{"label":"left","description":"shorter"},{"label":"right"}]}`
		if text == "ask me" {
			questions += `,{"question":"What else?","header":"More","multiSelect":true,"options":[{"label":"fast"},{"label":"loud"}]}`
		}
		c.open = fmt.Sprintf("q%d", c.turns)
		fmt.Fprintf(c.out, `{"type":"control_request","request_id":%q,"request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","tool_use_id":"t","input":{"questions":[`+
			questions+`]}}}`+"\n", c.open)
	case word == "work":
		c.say("working")
	case word == "file":
		c.say("working")
		if err := keep(rest, text); err != nil {
			c.fail(err.Error())
		}
	case word == "fail":
		c.fail(rest)
	case word == "die":
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(7)
	case word == "many":
		var n int
		fmt.Sscan(rest, &n)
		for i := range n {
			c.say(fmt.Sprintf("thing %d", i+1))
		}
		c.end("done")
	default:
		c.say("you said " + text)
		c.end("you said " + text)
	}
}

func (c *conversation) answered(s *said) {
	if c.open == "" || s.Response.RequestID != c.open {
		return
	}
	c.open = ""
	r := s.Response.Response
	switch {
	case r.Interrupt:
		c.fail("canceled")
		return
	case r.Input.Answers != nil:
		r.Behavior = r.Input.Answers["Which way?"] + " and " + r.Input.Answers["What else?"]
	case len(r.Changes) > 0:
		r.Behavior = "always " + r.Behavior
	}
	c.say(r.Behavior)
	c.end(r.Behavior)
}

func (c *conversation) say(text string) {
	line, _ := json.Marshal(text) // strings can be marshaled
	fmt.Fprintf(c.out, `{"type":"assistant","message":{"id":"m%d-%s","content":[{"type":"text","text":%s}]},"session_id":%q}`+"\n",
		c.turns, strings.ReplaceAll(text[:min(8, len(text))], `"`, ""), line, c.sessionID)
}

func (c *conversation) end(text string) {
	c.busy = false
	line, _ := json.Marshal(text) // strings can be marshaled
	fmt.Fprintf(c.out, `{"type":"result","subtype":"success","is_error":false,"result":%s,"session_id":%q}`+"\n", line, c.sessionID)
}

func (c *conversation) fail(text string) {
	c.busy = false
	line, _ := json.Marshal(text) // strings can be marshaled
	fmt.Fprintf(c.out, `{"type":"result","subtype":"error_during_execution","is_error":true,"result":%s,"session_id":%q}`+"\n", line, c.sessionID)
}
