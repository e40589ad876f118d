package acp_test

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// The options that the agent reports later are those that are set, and show the model.
func TestOptionsThatChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{}
		p, r := open(t, e, engine.Start{})
		p.update(`{"sessionUpdate":"config_option_update","configOptions":[{"id":"m","category":"model","currentValue":"small"}]}`)
		p.update(`{"sessionUpdate":"config_option_update","configOptions":[{"id":"m","category":"model","currentValue":"small"},{"id":"t","category":"thought_level","currentValue":"low"}]}`)
		p.update(`{"sessionUpdate":"config_option_update","configOptions":7}`)
		p.update(`{"sessionUpdate":"config_option_update","configOptions":[{"id":"n","category":"model","currentValue":"big"}]}`)
		synctest.Wait() // until the engine has read them
		done := make(chan error)
		go func() { done <- e.SetModel(t.Context(), "huge") }()
		m := p.expect("session/set_config_option")
		if want := `{"configId":"n","sessionId":"s","value":"huge"}`; string(m.Params) != want {
			t.Errorf("the engine sets %s, want %s", m.Params, want)
		}
		p.answer(m, `{"configOptions":[]}`)
		if err := <-done; err != nil {
			t.Error(err)
		}
		p.end()
		<-r.closed
		check(t, r, "session_started s", "session_started s small", `raw {"jsonrpc":"2.0","method":"session/update","params":{"sessio`, "session_started s big")
	})
}

// What only an agent knows is in the requests that begin and load a session.
func TestMetaOfSessions(t *testing.T) {
	t.Parallel()
	for resume, method := range map[string]string{"": "session/new", "s": "session/load"} {
		synctest.Test(t, func(t *testing.T) {
			p, transport := newPeer(t)
			r := newRecord(t)
			go func() {
				p.answer(p.expect("initialize"), greeting)
				m := p.expect(method)
				var params struct {
					Meta map[string]any `json:"_meta"`
				}
				if json.Unmarshal(m.Params, &params) != nil || params.Meta["mine"] != true {
					t.Errorf("%s with %s", method, m.Params)
				}
				p.answer(m, `{"sessionId":"s"}`)
				if resume != "" {
					p.refuse(p.expect("_bus-agent/nothing"), -32601, "unknown")
				}
			}()
			e := &acp.Engine{Meta: map[string]json.RawMessage{"mine": json.RawMessage("true")}}
			if _, err := e.Open(t.Context(), transport, engine.Start{Resume: resume}, r); err != nil {
				t.Error(err)
			}
			p.end()
			<-r.closed
		})
	}
}

// The models that an agent offers are known, in each form of the protocol.
func TestModelsOfAgents(t *testing.T) {
	t.Parallel()
	small, big := engine.Model{ID: "s", Name: "Small"}, engine.Model{ID: "b", Description: "large"}
	for opened, want := range map[string][]engine.Model{
		`"models":{"currentModelId":"s","availableModels":[{"modelId":"s","name":"Small"},7,{"modelId":"b","description":"large"}]}`:                                                           {small, big},
		`"configOptions":[{"id":"m","category":"model","currentValue":"s","options":[{"value":"s","name":"Small"},{"value":"b","description":"large"}]}]`:                                      {small, big},
		`"configOptions":[{"id":"m","category":"model","currentValue":"s","options":[{"group":"g","name":"G","options":[{"value":"s","name":"Small"}]},{"value":"b","description":"large"}]}]`: {small, big},
		`"models":{"availableModels":{}}`:                             nil,
		`"configOptions":[{"id":"m","category":"mode","options":[]}]`: nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			p, transport := newPeer(t)
			r := newRecord(t)
			go func() {
				p.answer(p.expect("initialize"), greeting)
				p.answer(p.expect("session/new"), `{"sessionId":"s",`+opened+`}`)
			}()
			info, err := (&acp.Engine{}).Open(t.Context(), transport, engine.Start{}, r)
			if err != nil || !slices.Equal(info.Models, want) {
				t.Errorf("%s: %+v, %v; want %+v", opened, info.Models, err, want)
			}
			p.end()
			<-r.closed
		})
	}
}
