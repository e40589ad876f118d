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
	// maxInput is the longest input of a tool that is looked at.
	maxInput = 1 << 20
)

// A masker makes texts fit to be sent.
type masker struct {
	environ []string
}

// newMasker returns a masker for the secrets in environ, those in the headers of
// the exporters included.
func newMasker(environ []string) *masker {
	m := &masker{environ: environ[:len(environ):len(environ)]}
	for _, entry := range environ {
		name, list, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") || !strings.HasSuffix(name, "HEADERS") {
			continue
		}
		for header := range strings.SplitSeq(list, ",") {
			_, value, _ := strings.Cut(header, "=")
			m.add(strings.TrimSpace(value))
		}
	}
	return m
}

// add makes the value of a header a secret, as it is written and as it is sent,
// with and without its scheme.
func (m *masker) add(value string) {
	values := []string{value}
	if plain, err := url.PathUnescape(value); err == nil && plain != value {
		values = append(values, plain)
	}
	for _, v := range values {
		if _, credentials, ok := strings.Cut(v, " "); ok {
			m.environ = append(m.environ, "HEADER_SECRET="+credentials)
		}
		m.environ = append(m.environ, "HEADER_SECRET="+v)
	}
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
		return clip(runner.Mask(m.environ, s), limit)
	}
	var beginning strings.Builder
	w := runner.NewMaskWriter(&beginning, m.environ)
	_, _ = w.Write([]byte(s[:limit])) // a Builder takes everything
	// Not flushed: what may be the beginning of a secret is left out.
	return clip(beginning.String(), limit)
}

// json returns the input of a tool with the secrets in its strings masked, however
// they are escaped.
func (m *masker) json(input json.RawMessage) string {
	var value any // whatever the tool takes
	if len(input) > maxInput || json.Unmarshal(input, &value) != nil {
		return m.text(string(input))
	}
	return m.text(encode(m.inside(value)))
}

func (m *masker) inside(value any) any {
	switch v := value.(type) {
	case string:
		return runner.Mask(m.environ, v)
	case []any:
		for i := range v {
			v[i] = m.inside(v[i])
		}
	case map[string]any:
		masked := make(map[string]any, len(v))
		for name, member := range v {
			masked[runner.Mask(m.environ, name)] = m.inside(member)
		}
		return masked
	}
	return value
}

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
