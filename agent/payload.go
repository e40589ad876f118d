package agent

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/busdk/bus-agent/jsonline"
)

// A Payload is a text that can be large and that few consumers read whole, such as the
// output of a tool. It is kept as the agent wrote it and unescaped on demand. The zero
// value is the empty text. In JSON it is a string.
//
// A payload of an event shares memory with the decoder, see [Event]; the results of
// its methods do not.
type Payload struct {
	text   string
	quoted jsonline.Text // instead of text
}

// Plain returns a payload of text.
func Plain(text string) Payload { return Payload{text: text} }

// Quoted returns a payload of a string in a line of JSON, which it refers to.
func Quoted(text jsonline.Text) Payload { return Payload{quoted: text} }

// String returns the text.
func (p Payload) String() string {
	if p.quoted.IsEmpty() {
		return p.text
	}
	return p.quoted.String()
}

// Parts returns the text of [Plain] or the string of [Quoted] that the payload was
// made from. The other one is empty.
func (p Payload) Parts() (plain string, quoted jsonline.Text) { return p.text, p.quoted }

// IsZero reports whether the text is empty.
func (p Payload) IsZero() bool { return p.text == "" && p.quoted.IsEmpty() }

// Equal reports whether both are the same text.
func (p Payload) Equal(other Payload) bool { return p.String() == other.String() }

// Size returns the length of the text in bytes as the agent wrote it, which with
// its escapes can be up to six times that of the text itself.
func (p Payload) Size() int { return len(p.text) + len(p.quoted.Raw()) }

// Excerpt returns the whole payload as head if its [Payload.Size] is at most head plus
// tail bytes. Otherwise it returns about that many bytes of its start and end, in
// whole characters, and the number of bytes omitted between them. It copies nothing.
func (p Payload) Excerpt(headSize, tailSize int) (head, tail Payload, omitted int) {
	if p.Size() <= headSize+tailSize {
		return p, Payload{}, 0
	}
	if p.quoted.IsEmpty() {
		head, tail = Plain(p.text[:runeStart(p.text, headSize)]), Plain(p.text[runeStart(p.text, len(p.text)-tailSize):])
	} else {
		head, tail = Quoted(p.quoted.Head(headSize)), Quoted(p.quoted.Tail(tailSize))
	}
	return head, tail, p.Size() - head.Size() - tail.Size()
}

// runeStart returns i, or the start of the character that contains i.
func runeStart(text string, i int) int {
	for back := 0; back < utf8.UTFMax && back <= i && i < len(text); back++ {
		if utf8.RuneStart(text[i-back]) {
			return i - back
		}
	}
	return i
}

// clone returns a payload that shares no memory with a line.
func (p Payload) clone() Payload { return Plain(p.String()) }

// MarshalJSON returns the text as a JSON string.
func (p Payload) MarshalJSON() ([]byte, error) {
	return p.appendJSON(make([]byte, 0, p.Size()+2)), nil
}

// UnmarshalJSON takes a JSON string, or null.
func (p *Payload) UnmarshalJSON(text []byte) error {
	*p = Payload{}
	return json.Unmarshal(text, &p.text)
}
