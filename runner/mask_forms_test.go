package runner_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/busdk/bus-agent/runner"
)

// inJSON returns text as encoding/json writes it.
func inJSON(text string) string {
	b, _ := json.Marshal(text) // a string never fails
	return string(b[1 : len(b)-1])
}

// inUnicode returns text with every character as \uXXXX.
func inUnicode(text, format string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, format, unit)
	}
	return b.String()
}

// formsOf returns the forms in which a secret can be written.
func formsOf(secret string) map[string]string {
	plainJSON := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(secret)
	forms := map[string]string{
		"plain":              secret,
		"trimmed":            strings.TrimSpace(secret),
		"JSON":               plainJSON,
		"JSON safe for HTML": inJSON(secret),
		"JSON with \\/":      strings.ReplaceAll(plainJSON, "/", `\/`),
		"JSON twice":         inJSON(inJSON(secret)),
		"JSON three times":   inJSON(inJSON(inJSON(secret))),
		"all \\u":            inUnicode(secret, `\u%04x`),
		"all \\U":            inUnicode(secret, `\u%04X`),
		"all \\u twice":      inUnicode(secret, `\\u%04x`),
		"query":              strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"),
		"path":               url.PathEscape(secret),
	}
	for name, encoding := range map[string]*base64.Encoding{
		"std": base64.StdEncoding, "url": base64.URLEncoding, "raw std": base64.RawStdEncoding, "raw url": base64.RawURLEncoding,
	} {
		for _, before := range []string{"", "u", "us", "user:", "\xff\xfe"} {
			for _, after := range []string{"", "\n", "\xff/"} {
				encoded := encoding.EncodeToString([]byte(before + secret + after))
				forms[fmt.Sprintf("base64 %s %q %q", name, before, after)] = encoded
				forms[fmt.Sprintf("base64 in JSON %s %q %q", name, before, after)] = strings.ReplaceAll(encoded, "/", `\/`)
				forms[fmt.Sprintf("base64 in URL %s %q %q", name, before, after)] = url.QueryEscape(encoded)
			}
		}
	}
	return forms
}

func TestHostileFormsOfSecretsAreMasked(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"sk-very-secret", `sk-"very\secret`, "a<b>c&d'e/f", "line one\nline two\n", "  spaces around \t\n", "ключ-секрет", "emoji-😀-secret", `\\\\\\\\\`, "100%25%41%2f+/", "ab/cd+ef==",
		strings.Repeat("Ab3_dE9x", 40), `c:\users\name\u0041`,
	} {
		masker := runner.NewMasker([]string{"MY_TOKEN=" + secret, "OTHER_KEY=another-secret"})
		trimmed := formsOf(strings.TrimSpace(secret))
		for name, form := range formsOf(secret) {
			// White space around a secret is not a part of it.
			rest := strings.Replace(form, trimmed[name], "***", 1)
			for _, around := range []string{"%s", "it is %s.", `{"text":"%s"}`, "x%sx\n"} {
				text := strings.Replace(around, "%s", form, 1)
				got := masker.Text(text)
				switch {
				case strings.HasPrefix(name, "base64"):
					// Up to two characters at either end hold bits of other bytes too.
					if n := len(text) - len(got); !strings.Contains(got, "***") || n < len(trimmed["plain"])*4/3-5 {
						t.Errorf("%s of %q: %q becomes %q", name, secret, text, got)
					}
				case got != strings.Replace(around, "%s", rest, 1):
					t.Errorf("%s of %q: %q becomes %q", name, secret, text, got)
				}
				if again := masker.Text(got); again != got {
					t.Errorf("%s: %q becomes %q", name, got, again)
				}
				if around == "it is %s." {
					inPieces(t, masker, text, got, 1)
				}
			}
		}
	}
}

// inPieces fails the test if a MaskWriter that gets text in pieces does not write want.
func inPieces(t *testing.T, masker *runner.Masker, text, want string, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	var got strings.Builder
	w := masker.Writer(&got)
	for rest := text; rest != ""; {
		n := 1 + random.IntN(min(len(rest), 20))
		if _, err := w.Write([]byte(rest[:n])); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
		if !strings.HasPrefix(want, got.String()) {
			t.Fatalf("%q was passed on, the whole is %q", got.String(), want)
		}
	}
	if err := w.Flush(); err != nil || got.String() != want {
		t.Errorf("%q, %v, want %q", got.String(), err, want)
	}
}

func TestMaskLeavesWhatIsNotASecret(t *testing.T) {
	t.Parallel()
	masker := runner.NewMasker([]string{"A_KEY= short \n", "B_TOKEN=        ", "C_SECRET=", "D_PATH=not-a-secret", "E_KEY=long-enough"})
	for _, text := range []string{"short", " short \n", "        ", "not-a-secret", `long\-enough`, "long-enougH", `\u006cong-enoug`, "100%", `c:\new\table\u12`, "%6cong-enoug"} {
		if got := masker.Text(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
		inPieces(t, masker, text, text, 1)
	}
}

// FuzzMaskForms looks for a form of a secret that is not masked, and for a text that is
// masked differently in pieces.
func FuzzMaskForms(f *testing.F) {
	f.Add("sk-very-secret", "before ", " after", uint64(1))
	f.Add(`a"b\c<d>é8`, `\`, `u0041`, uint64(2))
	f.Add("\\\\\\\\\\\\\\\\", `\\`, `\`, uint64(3))
	f.Add("%41%41%41%41", "%", "4", uint64(4))
	f.Fuzz(func(t *testing.T, secret, before, after string, seed uint64) {
		if len(secret)+len(before)+len(after) > 200 || len(strings.TrimSpace(secret)) < 8 || strings.Contains(secret, "*") || strings.ToValidUTF8(secret, "") != secret {
			t.Skip()
		}
		masker := runner.NewMasker([]string{"MY_TOKEN=" + secret})
		for name, form := range formsOf(secret) {
			text := before + form + after
			got := masker.Text(text)
			if !strings.Contains(got, "***") || strings.Contains(got, strings.TrimSpace(secret)) {
				t.Errorf("%s of %q: %q becomes %q", name, secret, text, got)
			}
			if again := masker.Text(got); again != got {
				t.Errorf("%s of %q: %q becomes %q", name, secret, got, again)
			}
			inPieces(t, masker, text, got, seed)
		}
	})
}
