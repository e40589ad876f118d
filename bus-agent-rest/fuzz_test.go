package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
)

func decode(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatal(err)
	}
}

// FuzzStream checks for any stream that reading ends, that the output is lines of
// JSON, that their text is the answer, that the sizes of reads do not matter, and
// that a success had an end marker.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"data: " + delta("hi") + "\n\ndata: " + stop + "\n\ndata: [DONE]\n\n",
		"data: " + delta("hi") + "\r\rdata:[DONE]",
		": ping\n\nevent: error\ndata: {\"error\":{\"message\":\"x\",\"code\":429}}\n\n",
		"data: {\"citations\":[\"https://a.example\",{\"url\":7},null],\"search_results\":[{}],\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n",
		"data: " + delta("a") + "\n\ndata: " + delta("ab") + "\n\ndata: " + delta("abc") + "\n\ndata: " + stop + "\n\n",
		"data: " + delta("A") + "\n\ndata: " + delta("A") + "\n\ndata: {\"choices\":[{\"delta\":{\"refusal\":\"I cannot do that\"}}]}\n\ndata: [DONE]\n\n",
		"data: {\"id\":[],\"model\":{},\"usage\":[],\"choices\":[{\"delta\":{\"content\":[{\"text\":\"x\"}],\"reasoning\":\"y\"}}]}\n\n",
		"data: {\"choices\":[{\"text\":\"\\ud800\\u0000\",\"finish_reason\":\"length\"}]}\n\n",
		"\ufeffdata: {", "data: [DONE]\n\n", "",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, cumulative bool) {
		if len(text) > 4<<10 {
			t.Skip("too long")
		}
		read := func(byByte bool) (string, *failure) {
			var out bytes.Buffer
			a := &answer{out: &output{to: &out}, limit: maxAnswer, cumulative: cumulative}
			r := bytes.NewReader(text)
			var failed *failure
			if byByte {
				failed = a.readStream(iotest.OneByteReader(r))
			} else {
				failed = a.readStream(r)
			}
			if failed == nil {
				a.addSources()
				a.out.write(a.result())
				if !a.complete() {
					t.Error("success without an end marker")
				}
			}
			var said strings.Builder
			lines := readLines(t, out.String())
			for _, l := range lines {
				if l.Type == "text" {
					said.WriteString(l.Text)
				}
			}
			if said.String() != strings.ToValidUTF8(a.text.String(), "\ufffd") {
				t.Errorf("the lines have %q, the answer is %q", said.String(), a.text.String())
			}
			if failed == nil && lines[len(lines)-1].Text != said.String() {
				t.Errorf("the result is %q, want %q", lines[len(lines)-1].Text, said.String())
			}
			return out.String(), failed
		}
		whole, wholeFailed := read(false)
		pieces, piecesFailed := read(true)
		if whole != pieces || (wholeFailed == nil) != (piecesFailed == nil) {
			t.Errorf("in one read:\n%s%+v\nbyte by byte:\n%s%+v", whole, wholeFailed, pieces, piecesFailed)
		}
	})
}
