package runner

import (
	"io"
	"strings"
	"sync"
)

// Mask returns text with "***" in place of every secret in environ, as in all
// texts of the runner. Secrets are the values of 8 bytes and more of variables
// whose name ends in _KEY, _TOKEN or _SECRET.
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
