package rest

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	cost := 0.5
	raw := func(text string) []agent.Event { return []agent.Event{{Kind: agent.KindRaw, Text: text}} }
	for _, test := range []struct {
		name, lines string
		want        []agent.Event
	}{
		{"blank lines are nothing", "\n  \n", nil},
		{"not JSON", "oops", raw("oops")},
		{"not an object", "[]", raw("[]")},
		{"unknown type", `{"type":"new"}`, raw(`{"type":"new"}`)},
		{"wrong types", `{"type":"text","text":7}`, raw(`{"type":"text","text":7}`)},
		{"members to come", `{"type":"text","text":"a","mood":{"x":[1]}}`, []agent.Event{{Kind: agent.KindText, MessageID: "answer", Delta: true, Text: "a"}}},
		{"start without a model", `{"type":"start","agent":"bus-agent-rest","provider":"openai"}`, []agent.Event{{Kind: agent.KindSessionStarted}}},
		{"the model that answers", `{"type":"answer","id":"c","model":"m"}`, []agent.Event{{Kind: agent.KindSessionStarted, Model: "m"}}},
		{"a server that names no model", `{"type":"answer","id":"c"}`, []agent.Event{{Kind: agent.KindHeartbeat}}},
		{"thoughts", `{"type":"thinking","text":"hm"}`, []agent.Event{{Kind: agent.KindThinking, MessageID: "answer", Delta: true, Text: "hm"}}},
		{"a retry", `{"type":"retry","text":"busy","attempt":1,"max_attempts":5,"wait_seconds":1.5,"status":429,"failure":"quota"}`,
			[]agent.Event{{Kind: agent.KindRetry, Text: "busy", Attempt: 1, MaxAttempts: 5, Failure: agent.FailureQuota}}},
		{"a warning", `{"type":"warning","text":"mind"}`, []agent.Event{{Kind: agent.KindWarning, Text: "mind"}}},
		{"usage", `{"type":"usage","input":4,"cached":1,"output":3,"reasoning":2,"cost_usd":0.5}`,
			[]agent.Event{{Kind: agent.KindUsage, Usage: &agent.Usage{Input: 4, Cached: 1, Output: 3, Reasoning: 2, CostUSD: &cost}}}},
		{"usage without cost", `{"type":"usage","input":4,"cost_usd":null}`, []agent.Event{{Kind: agent.KindUsage, Usage: &agent.Usage{Input: 4}}}},
		{"result", `{"type":"result","text":"a","citations":["https://a.example"],"finish_reason":"stop"}`, []agent.Event{{Kind: agent.KindResult, Text: "a"}}},
		{"failed", `{"type":"result","error":"why","status":500}`, []agent.Event{{Kind: agent.KindResult, Failed: true, Text: "why"}}},
		{"refused", `{"type":"result","error":"why","failure":"authentication","status":401}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Failure: agent.FailureAuthentication, Text: "why"}}},
		{"silence", `{"type":"result","error":"why","failure":"idle_timeout"}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Failure: agent.FailureIdleTimeout, Text: "why"}}},
		{"failed in a way to come", `{"type":"result","error":"why","failure":"weather"}`, []agent.Event{{Kind: agent.KindResult, Failed: true, Text: "why"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, backendtest.Decode(t, Runtime(service()), []byte(test.lines))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecognize(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		`{"type":"start","agent":"bus-agent-rest","provider":"mine","model":"m"}`: true,
		`{"type":"start","agent":"bus-agent-rest","provider":"yours"}`:            false,
		`{"type":"start","agent":"another","provider":"mine"}`:                    false,
		`{"type":"text","agent":"bus-agent-rest","provider":"mine"}`:              false,
		"": false, "{": false, "[]": false, "text": false,
	} {
		if got := Runtime(service()).Recognize([]byte(line)); got != want {
			t.Errorf("Recognize(%s) = %t", line, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	backendtest.FuzzDecoder(f, Runtime(service()), filepath.Join("..", "xai", "testdata"),
		`{"type":"usage","input":1,"cost_usd":1e5}`,
		`{"type":"retry","text":"x","attempt":1,"failure":"quota"}`,
		`{"type":"result","error":"x","failure":"authentication"}`,
		`{"type":"text","text":"\u00fc\ud800"}`,
	)
}
