package runner

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unsafe"
)

// Mask returns text with "***" in place of every secret in environ; see [Masker].
// Callers with several texts make a Masker.
func Mask(environ []string, text string) string { return NewMasker(environ).Text(text) }

// A Masker puts "***" in place of secrets, as in all texts of the runner. Secrets
// are the values of variables whose name ends in _KEY, _TOKEN or _SECRET, without
// white space around them; what is then shorter than 8 bytes is not masked. A
// secret is found
//
//   - as it is,
//   - in base64 of the standard and the URL alphabet, also within the base64 of a
//     longer text; a character at either end that holds bits of other bytes too
//     stays,
//   - as both with any of its characters escaped as in JSON, up to three times over,
//     or percent-encoded.
//
// Those that overlap become one "***". Other encodings are not found: among them
// hex, base64 of base64 or with line breaks, and compression.
//
// A Masker is immutable, so it may be used concurrently. A nil one masks nothing.
type Masker struct {
	finder func() *finder // made when the first text is masked
}

// NewMasker returns a Masker for the secrets in environ, nil for none.
func NewMasker(environ []string) *Masker {
	var secrets []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value = strings.TrimSpace(value); len(value) >= minSecret && isSecretName(name) {
			secrets = append(secrets, value)
		}
	}
	if len(secrets) == 0 {
		return nil
	}
	return &Masker{sync.OnceValue(func() *finder {
		needles := secrets
		for _, secret := range secrets {
			needles = append(needles, base64Forms(secret)...)
		}
		return newFinder(needles)
	})}
}

// minSecret is the length of the shortest secret; shorter values occur by accident.
const minSecret = 8

func isSecretName(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_SECRET")
}

// Text returns text without secrets, itself where there are none.
func (m *Masker) Text(text string) string {
	if m == nil {
		return text
	}
	s := scan{finder: m.finder()}
	s.run(text, true)
	if len(s.found) == 0 {
		return text
	}
	var b strings.Builder
	masked(&b, text, s.found)
	return b.String()
}

// masked writes text with "***" in place of what was found in it. A part that begins
// before the text has its "***" already.
func masked(w *strings.Builder, text string, found []span) {
	done := 0
	for _, secret := range found {
		if secret.from >= 0 {
			w.WriteString(text[done:secret.from])
			w.WriteString("***")
		}
		done = min(secret.to, len(text))
	}
	w.WriteString(text[done:])
}

// Writer returns a MaskWriter that writes to out.
func (m *Masker) Writer(out io.Writer) *MaskWriter { return &MaskWriter{masker: m, out: out} }

// A MaskWriter passes text on as [Mask] returns it, also where a secret comes in
// several writes. It holds back only what may be the beginning of a secret, until
// Flush. Its methods may be called concurrently.
type MaskWriter struct {
	masker *Masker
	out    io.Writer

	mu   sync.Mutex
	scan scan
	held []byte
}

// NewMaskWriter returns a MaskWriter that writes to out.
func NewMaskWriter(out io.Writer, environ []string) *MaskWriter {
	return NewMasker(environ).Writer(out)
}

// Write takes all of b. The error is that of the writer behind.
func (w *MaskWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.masker == nil {
		return w.out.Write(b)
	}
	w.scan.finder = w.masker.finder()
	w.held = append(w.held, b...)
	w.scan.run(w.text(), false)
	return len(b), w.pass(w.scan.settled())
}

// Flush passes on what is held back.
func (w *MaskWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) > 0 {
		w.scan.run(w.text(), true)
	}
	err := w.pass(len(w.held))
	w.scan = scan{}
	return err
}

// text returns what is held back, until that changes.
func (w *MaskWriter) text() string { return unsafe.String(unsafe.SliceData(w.held), len(w.held)) }

// pass passes the first n bytes on, in one write.
func (w *MaskWriter) pass(n int) error {
	if n == 0 {
		return nil
	}
	text := w.held[:n]
	if found := w.scan.until(n); len(found) > 0 {
		var b strings.Builder
		masked(&b, w.text()[:n], found)
		text = []byte(b.String())
	}
	var err error
	if len(text) > 0 {
		_, err = w.out.Write(text)
	}
	w.held = append(w.held[:0], w.held[n:]...)
	w.scan.drop(n)
	if cap(w.held) > maxKept && len(w.held) < maxKept {
		w.held = bytes.Clone(w.held)
	}
	return err
}

// maxKept is the largest buffer that a MaskWriter keeps between writes.
const maxKept = 128 << 10
