package acp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// elicit asks the user for a form.
func (p *peer) elicit(id int, message, schema string) {
	schema = strings.ReplaceAll(schema, "\n", "")
	p.say(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"sessionId":"s","mode":"form","message":%q,"requestedSchema":%s}}`, id, sdk.ClientMethodElicitationCreate, message, schema)
}

// A form is asked as questions, and the answers have the types of its fields.
func TestForms(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message, schema string
		asked           []agent.Question
		answers         [][]string
		want            string
	}{
		"every type of field": {
			"Please choose", `{"type":"object","required":["way","count"],"properties":{
				"way":{"type":"string","title":"Way","description":"Which way?","oneOf":[{"const":"l","title":"left"},{"const":"r","title":"right"}]},
				"extras":{"type":"array","items":{"anyOf":[{"const":"f","title":"fast"},{"const":"o","title":"loud"}]}},
				"plain":{"type":"array","items":{"enum":["a","b"]}},
				"sure":{"type":"boolean","description":"Sure?"},
				"count":{"type":"integer","title":"Count"},
				"share":{"type":"number"},
				"color":{"type":"string","enum":["red","blue"],"enumNames":["Red","Blue"]},
				"note":{"type":"string"},
				"rest":{"type":"string"}}}`,
			[]agent.Question{
				{Header: "Way", Text: "Which way?", Options: []agent.Option{{Label: "left"}, {Label: "right"}}},
				{Text: "extras", Options: []agent.Option{{Label: "fast"}, {Label: "loud"}}, Multiple: true, Optional: true},
				{Text: "plain", Options: []agent.Option{{Label: "a"}, {Label: "b"}}, Multiple: true, Optional: true},
				{Header: "sure", Text: "Sure?", Options: []agent.Option{{Label: "yes"}, {Label: "no"}}, Optional: true},
				{Text: "Count", FreeText: true},
				{Text: "share", FreeText: true, Optional: true},
				{Text: "color", Options: []agent.Option{{Label: "Red"}, {Label: "Blue"}}, Optional: true},
				{Text: "note", FreeText: true, Optional: true},
				{Text: "rest", FreeText: true, Optional: true},
			},
			[][]string{{"right"}, {"fast", "loud"}, {"b"}, {"yes"}, {" 12 "}, {"0.5"}, {"Blue"}, {"say \"hi\""}, nil},
			`{"action":"accept","content":{"color":"blue","count":12,"extras":["f","o"],"note":"say \"hi\"","plain":["b"],"share":0.5,"sure":true,"way":"r"}}`,
		},
		"one field": {
			"What is your name?", `{"properties":{"name":{"type":"string","title":"Name"}},"required":["name"]}`,
			[]agent.Question{{Header: "Name", Text: "What is your name?", FreeText: true}},
			[][]string{{"Ann"}}, `{"action":"accept","content":{"name":"Ann"}}`,
		},
		"labels that are the same": {
			"Which?", `{"properties":{"x":{"oneOf":[{"const":"1","title":"one"},{"const":"2","title":"one"}]}},"required":["x"]}`,
			[]agent.Question{{Header: "x", Text: "Which?", Options: []agent.Option{{Label: "one"}, {Label: "2"}}}},
			[][]string{{"2"}}, `{"action":"accept","content":{"x":"2"}}`,
		},
		"no field":     {"Continue?", `{"type":"object"}`, []agent.Question{{Text: "Continue?", Options: []agent.Option{{Label: "yes"}, {Label: "no"}}}}, [][]string{{"yes"}}, `{"action":"accept"}`},
		"no field, no": {"Continue?", `{"type":"object","properties":null}`, []agent.Question{{Text: "Continue?", Options: []agent.Option{{Label: "yes"}, {Label: "no"}}}}, [][]string{{"no"}}, `{"action":"decline"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &acp.Engine{}
				p, r := open(t, e, engine.Start{})
				var asked []agent.Question
				r.questions = func(q []agent.Question) { asked = q }
				send(t, e, p, "go")
				p.elicit(5, test.message, test.schema)
				id := <-r.requests
				done := make(chan error)
				go func() { done <- e.AnswerQuestions(t.Context(), id, test.answers) }()
				m := p.expect("")
				if err := <-done; err != nil || string(m.Result) != test.want {
					t.Errorf("the agent gets %s, %v; want %s", m.Result, err, test.want)
				}
				if diff := cmp.Diff(test.asked, asked); diff != "" {
					t.Error(diff)
				}
				if err := e.AnswerQuestions(t.Context(), id, test.answers); !errors.Is(err, engine.ErrTooLate) {
					t.Errorf("answered twice: %v", err)
				}
				p.end()
				<-r.closed
			})
		})
	}
}

// A form that is not filled in is declined or, with the turn, cancelled.
func TestFormsThatAreNotAnswered(t *testing.T) {
	t.Parallel()
	for decision, want := range map[engine.Decision]string{engine.Decline: `{"action":"decline"}`, engine.Cancel: `{"action":"cancel"}`} {
		synctest.Test(t, func(t *testing.T) {
			e := &acp.Engine{}
			p, r := open(t, e, engine.Start{})
			send(t, e, p, "go")
			p.elicit(5, "Name?", `{"properties":{"name":{}}}`)
			done := make(chan error)
			go func() { done <- e.Answer(t.Context(), <-r.requests, decision) }()
			if decision == engine.Cancel {
				p.expect("session/cancel")
			}
			if m := p.expect(""); string(m.Result) != want {
				t.Errorf("%s: the agent gets %s", decision, m.Result)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			p.end()
			<-r.closed
		})
	}
}

// A text where the agent expects a number leaves the form open.
func TestFormsNeedNumbers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{}
		p, r := open(t, e, engine.Start{})
		send(t, e, p, "go")
		p.elicit(5, "How many?", `{"properties":{"count":{"type":"integer"}}}`)
		id := <-r.requests
		for _, text := range []string{"many", "1.5", "0x10", "NaN", "1e400"} {
			if err := e.AnswerQuestions(t.Context(), id, [][]string{{text}}); !errors.Is(err, agent.ErrUsage) {
				t.Errorf("%s: %v", text, err)
			}
		}
		go func() { _ = e.AnswerQuestions(context.Background(), id, [][]string{{"3"}}) }()
		if m := p.expect(""); string(m.Result) != `{"action":"accept","content":{"count":3}}` {
			t.Errorf("the agent gets %s", m.Result)
		}
		p.end()
		<-r.closed
	})
}

// What is not a form that can be asked is refused, as is one without a turn to wait.
func TestFormsThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	for _, params := range []string{`{"mode":"url","message":"m","url":"https://example.com","elicitationId":"1"}`, `7`, `{"requestedSchema":{"properties":[1]}}`, `{"requestedSchema":{"properties":{"a":7}}}`} {
		synctest.Test(t, func(t *testing.T) {
			e := &acp.Engine{}
			p, r := open(t, e, engine.Start{})
			p.say(`{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":%s}`, params)
			if m := p.expect(""); m.Error == nil {
				t.Errorf("%s: the agent gets %s", params, m.Result)
			}
			p.end()
			<-r.closed
		})
	}
}

// The client offers what the protocol calls forms, and nothing else.
func TestFormsAreOffered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, transport := newPeer(t)
		r := newRecord(t)
		go func() { _, _ = (&acp.Engine{}).Open(context.Background(), transport, engine.Start{}, r) }()
		var params sdk.InitializeRequest
		if err := params.UnmarshalJSON(p.expect("initialize").Params); err != nil {
			t.Error(err)
		}
		c := params.ClientCapabilities
		if got := fmt.Sprint(c.Elicitation != nil && c.Elicitation.Form != nil && c.Elicitation.Url == nil, c.Terminal, c.Fs.ReadTextFile); got != "true false false" {
			t.Errorf("offered: %s", got)
		}
		p.end()
		<-r.closed
	})
}
