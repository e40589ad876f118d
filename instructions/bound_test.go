package instructions

import (
	"errors"
	"strings"
	"testing"
)

func TestHostileSettings(t *testing.T) {
	t.Parallel()
	list := strings.Repeat(`{"keys":["a"],"value":"b"},`, maxLists+1)
	for text, want := range map[string]string{
		strings.Repeat("[", 1001):                           "in each other",
		`{"a":` + strings.Repeat(`{"]":["}",`, 1000):        "in each other",
		strings.Repeat("[\"\\\"]\",/*]\"*/ // ]\"\n", 1001): "in each other",
		`{"a":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `,"b":"` + strings.Repeat("[", 2000) + `"}`: "",
		`{"busAgentOwned":{"version":1,"lists":[` + list[:len(list)-1] + `]}}`:                                      "not what this version writes",
	} {
		s, err := parseSettings([]byte(text))
		if err == nil {
			_, err = s.mark()
		}
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrUnparsable) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func TestHostileBeginLines(t *testing.T) {
	t.Parallel()
	b := Block{Path: "x", Name: "n", Comment: CommentHash, Text: "text\n"}
	begin := b.line(b.prefix() + "made=0 join=false bytes=0 id=0")
	for n, want := range map[int]error{maxBegins - 1: nil, maxBegins: ErrEdited} {
		data := strings.Repeat(begin, n) + b.render(placed{text: b.Text})
		if found, err := b.find([]byte(data)); !errors.Is(err, want) || (found == nil) != (want != nil) {
			t.Errorf("%d: %v, %v", n, found, err)
		}
	}
}
