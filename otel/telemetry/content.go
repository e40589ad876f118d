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
	// maxName is the maximum length of a name or ID, in bytes.
	maxName = 256
	// maxContent is the maximum length of a text, in bytes.
	maxContent = 64 << 10
)

// A masker masks and truncates texts.
type masker struct{ secrets *runner.Masker }

// newMasker returns a masker for the secrets in environ, including those in the
// headers of the exporters.
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

// appendHeader adds the value of a header as a secret, escaped and unescaped, with and
// without its scheme.
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

func (m *masker) name(s string) string { return m.upTo(maxName, s) }

func (m *masker) text(s string) string { return m.upTo(maxContent, s) }

func (m *masker) payload(p agent.Payload) string {
	head, _, _ := p.Excerpt(6*maxContent+64, 0) // JSON may encode a byte as six, and masking needs more than maxContent
	return m.text(head.String())
}

// upTo returns the beginning of s with secrets masked.
func (m *masker) upTo(limit int, s string) string {
	if len(s) <= limit {
		return clip(m.secrets.Text(s), limit)
	}
	var beginning strings.Builder
	w := m.secrets.Writer(&beginning)
	_, _ = w.Write([]byte(s[:limit])) // a Builder returns no error
	// Do not flush w: it holds back what may be the beginning of a secret.
	return clip(beginning.String(), limit)
}

// encode returns value as JSON, or "" if its type cannot be encoded.
func encode(value any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clip returns valid UTF-8 from s, truncated at limit bytes.
func clip(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// A chatMessage is an element of gen_ai.input.messages and gen_ai.output.messages.
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

// input records the prompt.
func (i *invocation) input(r *recording, prompt string) {
	if r.content && prompt != "" && i.span.IsRecording() {
		i.span.SetAttributes(semconv.GenAIInputMessagesKey.String(textMessage("user", r.mask.text(prompt), "")))
	}
}

// output records the answer; kind is the error type, or empty on success.
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
