package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A server can split its text between the halves of a surrogate pair: the JSON strings
// "\ud83d" and "\ude00" are one emoji in two parts. Such a half has no UTF-8 form, and
// encoding/json replaces it. Here it is the three bytes that it would have in UTF-8,
// until [halves.join] has seen the other half.

// halfSize is the length of half a surrogate pair in bytes.
const halfSize = 3

// replacement is U+FFFD, which replaces a half without the other one.
const replacement = string(utf8.RuneError)

// unquote decodes the JSON string raw into text. It keeps a half of a surrogate pair
// at its beginning and at its end.
func unquote(raw []byte, text *string) error {
	const escape = len(`\u0000`)
	begin, end := "", ""
	if len(raw) >= escape+2 && raw[0] == '"' {
		inner := string(raw[1 : len(raw)-1])
		if c := escaped(inner[:escape]); utf16.IsSurrogate(c) && c >= lowSurrogate {
			begin, inner = half(c), inner[escape:]
		}
		if at := len(inner) - escape; at >= 0 {
			before := inner[:at]
			backslashes := len(before) - len(strings.TrimRight(before, `\`))
			if c := escaped(inner[at:]); utf16.IsSurrogate(c) && c < lowSurrogate && backslashes%2 == 0 {
				end, inner = half(c), before
			}
		}
		raw = []byte(`"` + inner + `"`)
	}
	if err := json.Unmarshal(raw, text); err != nil {
		return err
	}
	*text = begin + *text + end
	return nil
}

// lowSurrogate is the first code of the second half of a pair.
const lowSurrogate = 0xdc00

// escaped returns the code of an escape such as \ud83d, 0 for anything else.
func escaped(text string) rune {
	digits, ok := strings.CutPrefix(text, `\u`)
	code, err := strconv.ParseUint(digits, 16, 16)
	if !ok || err != nil {
		return 0
	}
	return rune(code)
}

func half(c rune) string {
	return string([]byte{0xe0 | byte(c>>12), 0x80 | byte(c>>6)&0x3f, 0x80 | byte(c)&0x3f})
}

// halfOf returns the half of a surrogate pair at the beginning of text, or 0.
func halfOf(text string) rune {
	if len(text) < halfSize || text[0] != 0xed || text[1] < 0xa0 {
		return 0
	}
	return rune(text[0]&0x0f)<<12 | rune(text[1]&0x3f)<<6 | rune(text[2]&0x3f)
}

// halves joins the halves of surrogate pairs in the parts of a text.
type halves struct{ held string } // the first half of a pair at the end of a part

// join returns part with the half that was held back before it. It holds back a first
// half at the end of part, and replaces every half without the other one.
func (h *halves) join(part string) string {
	if part == "" || h.held == "" && utf8.ValidString(part) {
		return part
	}
	part, h.held = h.held+part, ""
	var b strings.Builder
	for part != "" {
		first := halfOf(part)
		switch {
		case first == 0:
			_, n := utf8.DecodeRuneInString(part)
			b.WriteString(part[:n])
			part = part[n:]
			continue
		case first < lowSurrogate && len(part) == halfSize:
			h.held, part = part, ""
			continue
		}
		part = part[halfSize:]
		c := utf8.RuneError
		if first < lowSurrogate {
			if c = utf16.DecodeRune(first, halfOf(part)); c != utf8.RuneError {
				part = part[halfSize:]
			}
		}
		b.WriteRune(c)
	}
	return b.String()
}

// flush returns the replacement of a half that was held back.
func (h *halves) flush() string {
	if h.held == "" {
		return ""
	}
	h.held = ""
	return replacement
}
