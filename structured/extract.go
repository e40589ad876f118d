package structured

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

// An answer is the JSON value that an agent's text holds.
type answer struct {
	text  string // of the value alone, as the agent wrote it
	value any
	flaw  error // see parser.flaw
}

// extract returns the one JSON value of text, the first that exists of
//
//   - the whole text
//   - the whole content of the only fenced code block that is JSON
//   - the only object or array among words, not counting those inside another
//
// A text that ends inside an object or an array has none.
func extract(text string) (answer, error) {
	if !utf8.ValidString(text) {
		return answer{}, errors.New("the answer is not valid UTF-8")
	}
	if strings.TrimSpace(text) == "" {
		return answer{}, errors.New("the answer is empty")
	}
	a, p, err := whole(text)
	if err == nil || errors.Is(err, errDeep) {
		return a, err
	}
	var why reason
	why.note(text, 0, p.at, err)
	found, err := inFences(text, &why)
	if err == nil && len(found) == 0 {
		found, err = among(text, &why)
	}
	switch {
	case err != nil:
		return answer{}, err
	case len(found) == 0:
		return answer{}, errors.New("the answer holds no JSON value" + why.text)
	case len(found) > 1:
		return answer{}, errors.New("the answer holds more than one JSON value")
	}
	return found[0], nil
}

// whole returns text as one value, and the parser that has read it.
func whole(text string) (answer, *parser, error) {
	v, p, err := parse(text)
	return answer{strings.Trim(text, " \t\r\n"), v, p.flaw}, p, err
}

// A reason says what is wrong with a text that is almost JSON.
type reason struct{ text string }

// note keeps the first error of almost-JSON: of a value that begins at begin in text,
// where the error is at.
func (r *reason) note(text string, begin, at int, err error) {
	almost := errors.Is(err, errComma) || errors.Is(err, errAfter) || strings.HasPrefix(strings.TrimLeft(text[begin:], " \t\r\n"), `{"`)
	if r.text == "" && almost {
		r.text = fmt.Sprintf(": %s: %v", position(text, at), err)
	}
}

// enough is how many values are searched for.
const enough = 2

// inFences returns the fenced code blocks of text that are JSON.
func inFences(text string, why *reason) (found []answer, err error) {
	for begin, block := range fenced(text) {
		switch a, p, err := whole(block); {
		case err == nil:
			found = append(found, a)
		case errors.Is(err, errDeep):
			return nil, err
		default:
			why.note(text, begin, begin+p.at, err)
		}
		if len(found) == enough {
			break
		}
	}
	return found, nil
}

// among returns the objects and arrays among the words of text. It skips a broken one
// up to the error, so that each byte is read once.
func among(text string, why *reason) (found []answer, err error) {
	p := &parser{text: text}
	for len(found) < enough {
		skip := strings.IndexAny(text[p.at:], "{[")
		if skip < 0 {
			return found, nil
		}
		begin := p.at + skip
		*p = parser{text: text, at: begin, path: p.path[:0]}
		v, err := p.value(0)
		switch {
		case err == nil:
			found = append(found, answer{text[begin:p.at], v, p.flaw})
		case errors.Is(err, errEnds), errors.Is(err, errDeep):
			return nil, err
		default:
			why.note(text, begin, p.at, err)
		}
		p.at = max(p.at, begin+1)
	}
	return found, nil
}

// fenced yields the fenced code blocks of text that are closed: where their contents
// begin, and these.
func fenced(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		var fence string // that opened the block
		begin, at := 0, 0
		for line := range strings.Lines(text) {
			start := at
			at += len(line)
			mark := fenceMark(line)
			switch {
			case fence == "" && mark != "":
				fence, begin = mark, at
			case fence != "" && strings.HasPrefix(mark, fence) && strings.TrimSpace(line) == mark:
				if !yield(begin, text[begin:start]) {
					return
				}
				fence = ""
			}
		}
	}
}

// fenceMark returns the backticks or tildes of a line that can open or close a
// block.
func fenceMark(line string) string {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 || trimmed == "" || trimmed[0] != '`' && trimmed[0] != '~' {
		return ""
	}
	info := strings.TrimLeft(trimmed, trimmed[:1])
	mark := trimmed[:len(trimmed)-len(info)]
	if len(mark) < 3 || mark[0] == '`' && strings.Contains(info, "`") {
		return ""
	}
	return mark
}
