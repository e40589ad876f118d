package layers

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// phrases lists words that slow readers down or have a standard word in this field,
// with what to write instead. A phrase is a sequence of lower-case words, in which
// a|b is one of two words, !a|b any word but these, "." the end of a phrase, and
// identifiers count as their words: IsNoFile has "is no".
var phrases = []struct{ phrase, instead string }{
	{"nobody|somebody|whoever|anybody", "the actor: the caller, the user, the agent"},
	{"people", "the user, readers"},
	{"shall", "must, will"},
	{"as long as", "while"},
	{"beside", "next to, besides"},
	{"!there is|are|was|were no !longer|more", "is not a, means no"},
	{"!there is|are none", "is not a"},
	{"goes|go|going on", "continue, run"},
	{"puts|put down", "mark as ended"},
	{"puts|put it down", "mark it as ended"},
	{"has to do with", "concerns"},
	{"says of", "reports about"},
	{"says nothing", "is silent, does not show"},
	{"without a word", "silently"},
	{"tells|told", "report, notify, show, distinguish"},
	{"takes|take|took note", "record"},
	{"awake|woken|wakes", "signal, clear the cooldown"},
	{"leftover|leftovers|litter|leavings|salvage|rests", "stale files, stale processes, clean up"},
	{"abandon|abandoned", "end with an error, stale"},
	{"heed|heeds", "respond to"},
	{"a look", "a check, a scan"},
	{"the call is wrong", "usage error"},
	{"supervisor|supervisors", "owner, background process"},
	{"of its|their|one's own", "separate, its"},
	{"what there is", "what exists, the content"},
	{"what is known of", "the state of"},
	{"is|are|was|were there !a|an|any|anything|something", "exists"},
	{"is|are|was said", "reported, shown"},
	{"what becomes|comes|came of", "the result, the state"},
	{"says more", "has the details"},
	{"look|looks after", "manage"},
	{"stands !for", "is"},
	{"of the user's .", "of the user"},
}

// exceptions are names that contain such words.
var exceptions = strings.NewReplacer(
	".bus-agent-salvage", "", // a file in homes that earlier versions made
	"supervisor-once", "", "supervisor-interval", "", // options of another program
	`json:"supervisor"`, "", "/src/told", "", // in entries that earlier versions wrote
)

// A phrase is one of phrases, made ready for matching.
type phrase struct {
	words  []alternatives
	anchor int // the first of words that lists what it matches
	text   string
}

type alternatives struct {
	words []string
	not   bool
}

func (a alternatives) match(words []string, i int) bool {
	word := "."
	if i >= 0 && i < len(words) {
		word = words[i]
	}
	return slices.Contains(a.words, word) != a.not
}

// finder returns a function that finds the phrases in a text.
func finder() func(text string) (found []string) {
	byWord := map[string][]phrase{}
	for _, listed := range phrases {
		p := phrase{text: listed.phrase + "; instead: " + listed.instead, anchor: -1}
		for i, field := range strings.Fields(listed.phrase) {
			list, not := strings.CutPrefix(field, "!")
			p.words = append(p.words, alternatives{strings.Split(list, "|"), not})
			if !not && p.anchor < 0 {
				p.anchor = i
			}
		}
		for _, word := range p.words[p.anchor].words {
			byWord[word] = append(byWord[word], p)
		}
	}
	return func(text string) (found []string) {
		words := wordsOf(text)
		for i := range words {
		next:
			for _, p := range byWord[words[i]] {
				begin := i - p.anchor
				for j, a := range p.words {
					if !a.match(words, begin+j) {
						continue next
					}
				}
				found = append(found, strings.Join(words[max(0, begin-4):min(len(words), begin+len(p.words)+4)], " ")+" has "+p.text)
			}
		}
		return found
	}
}

var (
	word  = regexp.MustCompile(`[A-Za-z0-9]+(?:'[a-z]+)?|[^A-Za-z0-9\s]+`)
	camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// wordsOf returns the words of a text in lower case. A mark that ends a phrase is ".",
// any other is "-".
func wordsOf(text string) []string {
	words := word.FindAllString(camel.ReplaceAllString(text, "$1 $2"), -1)
	for i, w := range words {
		switch {
		case strings.ContainsAny(w[:1], ".,;:!?)"):
			words[i] = "."
		case !unicode.IsLetter(rune(w[0])) && !unicode.IsDigit(rune(w[0])):
			words[i] = "-"
		default:
			words[i] = strings.ToLower(w)
		}
	}
	return words
}

func TestWordsArePlain(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	find := finder()
	files := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, file)
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (name == "testdata" || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case !d.Type().IsRegular() || rel == filepath.Join("internal", "layers", "words_test.go"):
			return nil
		}
		var texts func(string) iter.Seq2[int, string]
		switch filepath.Ext(name) {
		case ".go":
			texts = textsOfGo
		case ".md", ".mod", ".sh", ".yml", "":
			texts = paragraphs
		default:
			return nil
		}
		content, err := os.ReadFile(file)
		if bytes.IndexByte(content, 0) >= 0 {
			return err // a program that was built
		}
		files++
		for line, text := range texts(string(content)) {
			for _, found := range find(exceptions.Replace(text)) {
				t.Errorf("%s:%d: %s", rel, line, found)
			}
		}
		return err
	})
	if err != nil || files < 1000 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestPhrasesAreFound(t *testing.T) {
	t.Parallel()
	find := finder()
	for text, want := range map[string]int{
		"isNoFile reports":             1,
		"there is no file":             0,
		"the file is no longer open":   0,
		"The run goes\non.":            1,
		"a folder of the user's.":      1,
		"a folder of the user's home":  0,
		"TestRecorderIsToldOfARun":     1,
		"Nobody; somebody":             2,
		"what stands for a task":       0,
		"the runtimes that are there.": 1,
		"are there any runtimes?":      0,
	} {
		if found := find(text); len(found) != want {
			t.Errorf("%q: found %q, want %d", text, found, want)
		}
	}
}

// textsOfGo yields the comments, strings and identifiers of a Go file, with their lines.
func textsOfGo(content string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		var s scanner.Scanner
		file := token.NewFileSet().AddFile("", -1, len(content))
		s.Init(file, []byte(content), nil, scanner.ScanComments)
		var comment strings.Builder
		begin, end := 0, 0 // lines of the comment
		for {
			pos, tok, text := s.Scan()
			line := 0
			if tok != token.EOF {
				line = file.Line(pos)
			}
			if comment.Len() > 0 && (tok != token.COMMENT || line > end+1) {
				if !yield(begin, comment.String()) {
					return
				}
				comment.Reset()
			}
			switch tok {
			case token.EOF:
				return
			case token.COMMENT:
				if comment.Len() == 0 {
					begin = line
				}
				end = line
				comment.WriteString(strings.TrimPrefix(text, "//") + " ")
			case token.STRING:
				text, _ = strconv.Unquote(text)
				if !yield(line, text) {
					return
				}
			case token.IDENT:
				if !yield(line, text) {
					return
				}
			}
		}
	}
}

// paragraphs yields the paragraphs of a page, with their lines.
func paragraphs(content string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		line := 1
		for _, text := range strings.Split(content, "\n\n") {
			if !yield(line, text) {
				return
			}
			line += strings.Count(text, "\n") + 2
		}
	}
}
