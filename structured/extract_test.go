package structured

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestExtract(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want, says string }{
		"whole":                  {`{"a":1}`, `{"a":1}`, ""},
		"white space around":     {"\r\n\t [1, 2]\n", `[1, 2]`, ""},
		"a lone text":            {`"yes"`, `"yes"`, ""},
		"a lone number":          {"-0.5e3\n", `-0.5e3`, ""},
		"a lone word":            {`null`, `null`, ""},
		"fenced":                 {"```json\n{\"a\": 1}\n```", "{\"a\": 1}", ""},
		"fenced with words":      {"Here it is:\n\n```\n[1]\n```\nDone.", "[1]", ""},
		"fenced with tildes":     {"~~~~json\n[1]\n~~~~", "[1]", ""},
		"a lone word, fenced":    {"So:\n```json\ntrue\n```", "true", ""},
		"fences inside":          {"````\n\"```\"\n````", "\"```\"", ""},
		"code next to it":        {"```sh\n[ -f x ]\n```\nand\n```json\n{}\n```", "{}", ""},
		"two that are fenced":    {"```\n1\n```\n```\n2\n```", "", "holds more than one JSON value"},
		"fenced before words":    {"See [1].\n```\n{\"a\":[2]}\n```", `{"a":[2]}`, ""},
		"an open fence":          {"```json\n{\"a\":1}", `{"a":1}`, ""},
		"among words":            {`The answer is {"a":[1,{}]}.`, `{"a":[1,{}]}`, ""},
		"brackets in words":      {`Use [brackets] {like this}: [1]`, `[1]`, ""},
		"two among words":        {`{"a":1} or {"a":2}`, "", "holds more than one JSON value"},
		"two lines of it":        {"{\"a\":1}\n{\"a\":2}", "", "holds more than one JSON value"},
		"trailing text":          {`{"a":1} is it`, `{"a":1}`, ""},
		"scalars are words":      {`It is 7, or "8", or true.`, "", "holds no JSON value"},
		"nothing":                {" \n", "", "is empty"},
		"words":                  {"I could not find it.", "", "holds no JSON value"},
		"cut":                    {`{"a":[1,2`, "", "ends before"},
		"cut in a text":          {`{"a":"b`, "", "ends before"},
		"cut in a word":          {`{"a":tr`, "", "ends before"},
		"cut in a number":        {`[1.`, "", "ends before"},
		"cut after another":      {`{"a":1} {"b":`, "", "ends before"},
		"single quotes":          {`{'a':1}`, "", "holds no JSON value"},
		"a trailing comma":       {`{"a":1,}`, "", "holds no JSON value: line 1, column 7: trailing comma"},
		"one in an array":        {"[1,\n 2 , ]", "", "holds no JSON value: line 2, column 4: trailing comma"},
		"one in a fence":         {"So:\n```json\n{\"a\":[1,],}\n```", "", "holds no JSON value: line 3, column 8: trailing comma"},
		"one among words":        {`It is {"a":{"b":1,}} [x].`, "", "holds no JSON value: line 1, column 18: trailing comma"},
		"text after it":          {"\"yes\" is the answer", "", "holds no JSON value: line 1, column 7: text after the value"},
		"an unquoted name":       {`{"a":1,b:2}`, "", "holds no JSON value: line 1, column 8: not JSON"},
		"what is inside of it":   {`{"a":[1,2],oops}`, "", "holds no JSON value"},
		"a comment":              {"{\"a\":1 // one\n}", "", "holds no JSON value"},
		"a line break in a text": {"{\"a\":\"\n\"}", "", "holds no JSON value"},
		"a zero before a number": {`[01]`, "", "holds no JSON value"},
		"not UTF-8":              {"{\"a\":\"\xff\"}", "", "UTF-8"},
		"a mark before":          {"\ufeff{}", "{}", ""},
		"too deep":               {strings.Repeat("[", 300) + strings.Repeat("]", 300), "", "nested more than"},
		"too deep, fenced":       {"x\n```\n" + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "\n```", "", "nested more than"},
		"as deep as it may be":   {strings.Repeat("[", 200) + strings.Repeat("]", 200), strings.Repeat("[", 200) + strings.Repeat("]", 200), ""},
		"a name twice":           {`So: {"a":1,"a":2}`, `{"a":1,"a":2}`, ""},
	} {
		a, err := extract(c.text)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		} else if err == nil && a.text != c.want {
			t.Errorf("%s: got %s, want %s", name, a.text, c.want)
		}
	}
}

// Each byte is read a few times at most, whatever an agent writes.
func TestExtractTakesTimeInProportion(t *testing.T) {
	t.Parallel()
	const size = 1 << 18
	begun := time.Now()
	for _, piece := range []string{"[", "{", "[x", `{"a":`, "[1]", "```\n", "```\n[\n", "\"", `{"`, "1"} {
		_, _ = extract(strings.Repeat(piece, size/len(piece)))
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

func FuzzExtract(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"a":[1,2.5e3,"x\n\u00e9",null,true]}`, "a ```json\n[1]\n``` b", `{"a":1} {"b":2}`, `[[[[`, `{"a":1,"a":2}`, "~~~\n1\n~~~", `"\ud800"`, "-", "tru", "[1,]", "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := extract(text)
		if err == nil {
			if !json.Valid([]byte(a.text)) {
				t.Errorf("%q is not JSON", a.text)
			}
			if !strings.Contains(text, a.text) {
				t.Errorf("%q is not in the text", a.text)
			}
			if _, err := extract(a.text); err != nil {
				t.Errorf("%q alone: %v", a.text, err)
			}
		}
		// Where the depth does not matter, JSON is what the standard library says.
		if strings.Count(text, "[")+strings.Count(text, "{") < maxDepth {
			if _, _, err := parse(text); (err == nil) != json.Valid([]byte(text)) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
