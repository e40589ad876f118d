package telemetry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/otel/telemetry"
)

// recordTexts records a run whose events contain the given texts.
func recordTexts(b *recorder, prompt, input, output, text, reason string) {
	run := recordable()
	run.Request.Prompt = prompt
	run.Environ = append(run.Environ, `QUOTED_TOKEN=a"b\c<d>é8`, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20collector-pass,x-tenant=tenant-pass")
	run.Secrets = []string{"HEADER_SECRET=mcp-pass"}
	r := b.record(b.t.Context(), run)
	b.send(r, agent.Event{Kind: agent.KindText, Text: text}, agent.Event{Kind: agent.KindThinking, Text: text},
		call("c", "shell", input), result("c", output),
		agent.Event{Kind: agent.KindRetry, Text: text}, agent.Event{Kind: agent.KindWarning, Text: text},
		agent.Event{Kind: agent.KindApproval, Failed: true, Text: text})
	b.end(r, agent.Result{Text: text}, &agent.Error{Kind: agent.ErrAgent, Err: errors.New(reason)})
}

func TestWithoutContent(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	recordTexts(b, "PROMPT", `{"command":"INPUT"}`, "OUTPUT", "TEXT", "REASON")
	all := b.everything()
	for _, word := range []string{"PROMPT", "INPUT", "OUTPUT", "TEXT", "REASON"} {
		if strings.Contains(all, word) {
			t.Errorf("%s is recorded:\n%s", word, all)
		}
	}
}

func TestWithContent(t *testing.T) {
	t.Parallel()
	b := newRecorder(t, telemetry.WithContent(true))
	recordTexts(b, "a <prompt>", `{"command":"ls"}`, "x\ny", `"text"`, "the reason")
	run := b.span("invoke_agent parrot")
	b.want(run, map[string]string{
		"gen_ai.input.messages":  `[{"role":"user","parts":[{"type":"text","content":"a <prompt>"}]}]`,
		"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"\"text\""}],"finish_reason":"error"}]`,
	})
	if run.Status.Description != "the reason" {
		t.Errorf("the status is %q, want the reason", run.Status.Description)
	}
	b.want(b.span("execute_tool shell"), map[string]string{
		"gen_ai.tool.call.arguments": `{"command":"ls"}`, "gen_ai.tool.call.result": "x\ny",
	})
}

func TestInputThatComesLater(t *testing.T) {
	t.Parallel()
	b := newRecorder(t, telemetry.WithContent(true))
	r := b.record(t.Context(), recordable())
	again := call("c", "shell", `{"command":"ls"}`)
	again.Delta = true
	b.send(r, call("c", "shell", ""), again, result("c", "x"))
	b.end(r, agent.Result{}, nil)
	b.want(b.span("execute_tool shell"), map[string]string{"gen_ai.tool.call.arguments": `{"command":"ls"}`})
}

// The secrets are masked in any JSON encoding.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	secrets := []string{"sk-very-secret", `a"b\c<d>é8`, "collector-pass", "tenant-pass", "mcp-pass"}
	for _, content := range []bool{true, false} {
		for _, secret := range secrets {
			t.Run(fmt.Sprint(content, secret), func(t *testing.T) {
				t.Parallel()
				b := newRecorder(t, telemetry.WithContent(content))
				escaped := ""
				for _, r := range secret {
					escaped += fmt.Sprintf(`\u%04x`, r)
				}
				text := "it is " + secret + "."
				recordTexts(b, text, `{"list":["`+escaped+`"],"`+escaped+`":1,"n":{"m":"`+escaped+`"}}`, text, text, text)
				r := b.record(t.Context(), agent.Recordable{
					Start:    agent.Start{Runtime: "r-" + secret, Model: "m-" + secret},
					Request:  agent.Request{Labels: agent.Labels{Project: secret, Task: secret, Parent: secret, Previous: secret}, Access: agent.Access(secret)},
					Environ:  []string{"MY_API_KEY=sk-very-secret", `QUOTED_TOKEN=a"b\c<d>é8`, "OTEL_EXPORTER_OTLP_TRACES_HEADERS=authorization=Bearer collector-pass, x-tenant=tenant-pass"},
					Secrets:  []string{"HEADER_SECRET=mcp-pass"},
					Provider: secret,
				})
				b.send(r, agent.Event{Kind: agent.KindSessionStarted, SessionID: secret, Model: secret}, call("c-"+secret, secret, secret), result("c-"+secret, secret))
				b.end(r, agent.Result{RunID: secret, SessionID: secret}, nil)

				all := b.everything()
				quoted, err := json.Marshal(secret)
				if err != nil {
					t.Fatal(err)
				}
				for _, form := range []string{secret, strings.Trim(string(quoted), `"`), strings.ReplaceAll(strings.ReplaceAll(secret, `\`, `\\`), `"`, `\"`), escaped} {
					if strings.Contains(all, form) {
						t.Errorf("%s is recorded:\n%s", form, all)
					}
				}
			})
		}
	}
}

// A secret at the limit is removed, not truncated.
func TestLongContentIsTruncated(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	b := newRecorder(t, telemetry.WithContent(true))
	for shift := range 20 {
		text := strings.Repeat("x", limit-shift) + "sk-very-secret" + strings.Repeat("y", limit)
		recordTexts(b, text, text, text, text, text)
	}
	all := b.everything()
	if i := strings.Index(all, "sk-"); i >= 0 {
		t.Errorf("the beginning of a secret is recorded: %s", all[i:i+20])
	}
	for _, s := range b.traces.GetSpans() {
		for key, text := range attributesOf(s.Attributes) {
			if len(text) > limit+200 { // around it are the words of a message
				t.Errorf("%s of %s is %d bytes", key, s.Name, len(text))
			}
		}
		if got := attributesOf(s.Attributes)["gen_ai.tool.call.result"]; s.Name == "execute_tool shell" && len(got) < limit-20 {
			t.Errorf("%d bytes of a result are recorded, want about %d", len(got), limit)
		}
	}
}
