package telemetry

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

const (
	// maxWord is the length of a name, an ID or another word in bytes.
	maxWord = 256
	// maxContent is the length of a text of the user, the agent or a tool.
	maxContent = 64 << 10
)

// A masker makes texts fit to be sent.
type masker struct{ secrets *runner.Masker }

// newMasker returns a masker for the secrets in environ, those in the headers of
// the exporters included.
func newMasker(environ []string) *masker {
	all := environ[:len(environ):len(environ)]
	for _, entry := range environ {
		name, list, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") || !strings.HasSuffix(name, "HEADERS") {
			continue
		}
		for header := range strings.SplitSeq(list, ",") {
			_, value, _ := strings.Cut(header, "=")
			all = appendHeader(all, strings.TrimSpace(value))
		}
	}
	return &masker{runner.NewMasker(all)}
}

// appendHeader makes the value of a header a secret, as it is written and as it is
// sent, with and without its scheme.
func appendHeader(environ []string, value string) []string {
	values := []string{value}
	if plain, err := url.PathUnescape(value); err == nil && plain != value {
		values = append(values, plain)
	}
	for _, v := range values {
		if _, credentials, ok := strings.Cut(v, " "); ok {
			environ = append(environ, "HEADER_SECRET="+credentials)
		}
		environ = append(environ, "HEADER_SECRET="+v)
	}
	return environ
}

// word returns s as a word.
func (m *masker) word(s string) string { return m.upTo(maxWord, s) }

// text returns s as content.
func (m *masker) text(s string) string { return m.upTo(maxContent, s) }

func (m *masker) payload(p agent.Payload) string {
	head, _, _ := p.Excerpt(6*maxContent+64, 0) // a byte can be written as six, and one more shows that it was cut
	return m.text(head.String())
}

// upTo returns the beginning of s with what is secret masked.
func (m *masker) upTo(limit int, s string) string {
	if len(s) <= limit {
		return clip(m.secrets.Text(s), limit)
	}
	var beginning strings.Builder
	w := m.secrets.Writer(&beginning)
	_, _ = w.Write([]byte(s[:limit])) // a Builder takes everything
	// Not flushed: what may be the beginning of a secret is left out.
	return clip(beginning.String(), limit)
}

// json returns the input of a tool without secrets.
func (m *masker) json(input json.RawMessage) string { return m.text(string(input)) }

// encode returns value as JSON; its types can be nothing else.
func encode(value any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clip returns s as valid text of at most limit bytes.
func clip(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// A chatMessage is an element of gen_ai.input.messages or gen_ai.output.messages.
type chatMessage struct {
	Role         string     `json:"role"`
	Parts        []chatPart `json:"parts"`
	FinishReason string     `json:"finish_reason,omitempty"`
}

type chatPart struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

func textMessage(role, text, finish string) string {
	return encode([]chatMessage{{Role: role, Parts: []chatPart{{Type: "text", Content: text}}, FinishReason: finish}})
}

// input records what the agent is asked.
func (i *invocation) input(r *recording, prompt string) {
	if r.content && prompt != "" && i.span.IsRecording() {
		i.span.SetAttributes(semconv.GenAIInputMessagesKey.String(textMessage("user", r.mask.text(prompt), "")))
	}
}

// output records the agent's answer; kind is empty for an invocation that
// succeeded.
func (i *invocation) output(r *recording, text, kind string) {
	if !r.content || text == "" || !i.span.IsRecording() {
		return
	}
	finish := "stop"
	if kind != "" {
		finish = "error"
	}
	i.span.SetAttributes(semconv.GenAIOutputMessagesKey.String(textMessage("assistant", r.mask.text(text), finish)))
}

// An answer is the last message of the agent, up to a limit.
type answer struct {
	id   string
	text strings.Builder
}

// add takes in a text event, or a result with its text.
func (a *answer) add(e *agent.Event) {
	if e.MessageID != a.id || !e.Delta {
		a.clear()
		a.id = e.MessageID
	}
	// One byte more than is recorded shows that it was cut.
	if room := maxContent + 1 - a.text.Len(); room > 0 {
		a.text.WriteString(e.Text[:min(room, len(e.Text))])
	}
}

func (a *answer) clear() {
	a.text.Reset()
	a.id = ""
}

func (a *answer) String() string { return a.text.String() }
