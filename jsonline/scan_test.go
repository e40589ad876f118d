package jsonline

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// scanBytewise is scanString, a byte at a time.
func scanBytewise(b []byte, i int) (end int, escaped bool) {
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i, escaped
		case c < ' ':
			return -1, escaped
		case c == '\\':
			escaped = true
			switch {
			case i+1 < len(b) && strings.IndexByte(`"\/bfnrt`, b[i+1]) >= 0:
				i++
			case i+5 < len(b) && b[i+1] == 'u' && hex4(b, i+2) >= 0:
				i += 5
			default:
				return -1, escaped
			}
		}
	}
	return -1, escaped
}

func checkScan(t *testing.T, b []byte, i int) {
	t.Helper()
	end, escaped := scanString(b, i)
	wantEnd, wantEscaped := scanBytewise(b, i)
	if end != wantEnd || end >= 0 && escaped != wantEscaped {
		t.Fatalf("%q from %d: ends at %d, escaped %v; want %d, %v", b, i, end, escaped, wantEnd, wantEscaped)
	}
}

// Every byte at every place of a string long enough to be looked at in all ways,
// alone, after a backslash and after two.
func TestScanStringKnowsEveryByte(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for _, before := range []string{"", `\`, `\\`, `\\\`, `\u00e`, `\n\t\`} {
			for at := range 90 {
				b := []byte(strings.Repeat("x", at) + before + string([]byte{byte(c)}) + strings.Repeat("y", 90-at) + `" "`)
				checkScan(t, b, 0)
			}
		}
	}
}

func TestScanStringAgreesBytewise(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{`\`, `\\`, `\"`, `\n`, `\u001b`, `\ud83d\ude00`, `\u12`, `\x`, "é", "😀", "\xff", "\x7f", "a", "longer text without anything in it", "0123456789abcdef"}
	for range 20_000 {
		var s strings.Builder
		for range random.IntN(24) {
			s.WriteString(pieces[random.IntN(len(pieces))])
		}
		switch random.IntN(4) {
		case 0:
			s.WriteByte(byte(random.IntN(' ')))
		case 1:
			s.WriteByte('"')
		}
		s.WriteString(strings.Repeat("z", random.IntN(70)))
		s.WriteString(`",":"` + strings.Repeat(`\"`, random.IntN(20)))
		checkScan(t, []byte(s.String()), 0)
	}
}

func FuzzScanString(f *testing.F) {
	f.Add([]byte(strings.Repeat(`\\`, 31)+`"`), 1)
	f.Add([]byte(strings.Repeat("a", 47)+`\`), 0)
	f.Fuzz(func(t *testing.T, b []byte, i int) {
		if i < 0 || i > len(b) {
			return
		}
		checkScan(t, b, i)
	})
}

// What AppendPrintable and Rune take one after the other is the string.
func TestPrintableAndTheRestAreTheString(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{
		`""`, `"plain"`, `"plain, and longer than a word\n\ttwo\"\\\/"`, `"a\u0041\u001b[31mred\u001b[0m\r\n\b\f\\"`,
		`"é is not ASCII, 😀 neither"`, `"\ud83d\ude00\ud83d"`, "\"\x7fdelete\"", "\"\xff\xfe no UTF-8 \xc3\"", `"` + strings.Repeat("0123456\\n", 9) + `"`,
	} {
		var want string
		if err := json.Unmarshal([]byte(literal), &want); err != nil {
			t.Fatal(err)
		}
		r := New([]byte(literal))
		rest := r.Text()
		var got []byte
		for !rest.IsEmpty() {
			before := len(got)
			got, rest = rest.AppendPrintable(got)
			for _, c := range got[before:] {
				if c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
					t.Errorf("%s: %q is not printable", literal, c)
				}
			}
			if !rest.IsEmpty() {
				hex := strings.HasPrefix(string(rest.Raw()), `\u`)
				var c rune
				if c, rest = rest.Rune(); !hex && (c >= ' ' && c < 0x7f || c == '\n' || c == '\t') {
					t.Errorf("%s: %q is printable and was left", literal, c)
				}
				got = append(got, string(c)...)
			}
		}
		if string(got) != want {
			t.Errorf("%s: %q, want %q", literal, got, want)
		}
	}
}
