package runner

import (
	"io"
	"slices"
	"strings"
	"sync"
)

// Mask returns text with "***" in place of every secret in environ, as in all
// texts of the runner. Secrets are the values of 8 bytes and more of variables
// whose name ends in _KEY, _TOKEN or _SECRET. Those that overlap become one "***".
func Mask(environ []string, text string) string { return findSecrets(environ).mask(text) }

// A MaskWriter passes text on as [Mask] returns it, also where a secret comes in
// several writes. It holds back only what may be the beginning of a secret, until
// Flush. Its methods may be called concurrently.
type MaskWriter struct {
	mu      sync.Mutex
	out     io.Writer
	secrets secrets
	held    string
}

// NewMaskWriter returns a MaskWriter that writes to out.
func NewMaskWriter(out io.Writer, environ []string) *MaskWriter {
	return &MaskWriter{out: out, secrets: findSecrets(environ)}
}

// Write takes all of b. The error is that of the writer behind.
func (w *MaskWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.secrets) == 0 {
		return w.out.Write(b)
	}
	w.held += string(b)
	return len(b), w.pass(w.secrets.settled(w.held))
}

// Flush passes on what is held back.
func (w *MaskWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(len(w.held))
}

// pass passes the first n bytes on.
func (w *MaskWriter) pass(n int) error {
	text := w.secrets.mask(w.held[:n])
	w.held = w.held[n:]
	if text == "" {
		return nil
	}
	_, err := io.WriteString(w.out, text)
	return err
}

// A span is a part of a text.
type span struct{ from, to int }

// mask returns text with "***" in place of what is secret in it.
func (s secrets) mask(text string) string {
	found := s.find(text)
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	done := 0
	for len(found) > 0 {
		secret := found[0]
		for found = found[1:]; len(found) > 0 && found[0].from < secret.to; found = found[1:] {
			secret.to = max(secret.to, found[0].to)
		}
		b.WriteString(text[done:secret.from])
		b.WriteString("***")
		done = secret.to
	}
	b.WriteString(text[done:])
	return b.String()
}

// find returns where secrets are in text, from left to right. They may overlap.
func (s secrets) find(text string) (found []span) {
	for _, value := range s {
		first := len(found)
		for at := 0; ; at++ {
			next := strings.Index(text[at:], value)
			if next < 0 {
				break
			}
			at += next
			// What repeats itself, and can begin in its own middle, is one span.
			if last := len(found) - 1; last >= first && at < found[last].to {
				found[last].to = at + len(value)
			} else {
				found = append(found, span{at, at + len(value)})
			}
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	return found
}

// settled returns how much of text is masked alike whatever follows it.
func (s secrets) settled(text string) int {
	end := len(text)
	for _, value := range s {
		for n := min(len(value)-1, len(text)); n > len(text)-end; n-- {
			if strings.HasSuffix(text, value[:n]) {
				end = len(text) - n
				break
			}
		}
	}
	for again := true; again; { // a secret stays in one piece
		again = false
		for _, value := range s {
			from := max(0, end-len(value)+1)
			to := min(len(text), end+len(value)-1)
			if at := strings.Index(text[from:to], value); at >= 0 && from+at < end {
				end, again = from+at, true
			}
		}
	}
	return end
}
