package corpus

import (
	"bytes"
	"embed"
	"encoding/json"
	"strings"
)

// texts are what tools print and models say, with ^[ for the escape character and
// the bracket after it.
//
//go:embed text
var texts embed.FS

func text(name string) string {
	data, err := texts.ReadFile("text/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(data)
}

// Texts as the bodies of JSON strings, line by line.
var (
	goCode         = escaped(text("store.go.txt"))
	scriptCode     = escaped(text("list.tsx.txt"))
	testLog        = escaped(text("test.log.txt"))
	diff           = escaped(text("diff.txt"))
	configuration  = escaped(text("package.json.txt"))
	prose          = escaped(text("prose.txt"))
	words          = pieces(text("prose.txt"))
	fileNames      = strings.Fields(text("paths.txt"))
	shellCommands  = escaped(text("commands.txt"))
	newline        = `\n`
	outputsOfTools = [][]string{goCode, goCode, scriptCode, testLog, diff, configuration}
)

// escaped returns the lines of text as JSON writes them between the quotes.
func escaped(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		line = strings.ReplaceAll(line, "^[", "\x1b[")
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(line); err != nil {
			panic(err) // a string is always encoded
		}
		lines = append(lines, strings.Trim(b.String(), "\n")[1:b.Len()-2])
	}
	return lines
}

// pieces cuts text as a model streams it: a few characters at a time, the space
// before the word.
func pieces(text string) []string {
	var all []string
	for _, line := range escaped(text) {
		for i, word := range strings.Split(line, " ") {
			if i > 0 {
				word = " " + word
			}
			all = append(all, word)
		}
		all = append(all, `\n\n`)
	}
	return all
}

// output adds what a tool printed, about size bytes of it: lines of one kind
// from anywhere in it, as they follow each other, some with their numbers.
func (g *generator) output(size int) {
	kind := outputsOfTools[g.random.below(len(outputsOfTools))]
	numbered := (&kind[0] == &goCode[0] || &kind[0] == &scriptCode[0]) && g.random.percent(60)
	at := g.random.below(len(kind))
	number := g.random.between(1, 900)
	end := len(g.line) + size
	for len(g.line) < end {
		if numbered {
			g.number(number)
			g.add(`\t`)
			number++
		}
		g.add(kind[at], newline)
		at++
		if at == len(kind) || g.random.percent(3) {
			at = g.random.below(len(kind))
		}
	}
}

// say adds n text("prose.txt").
func (g *generator) say(n int) {
	for i := range n {
		if i > 0 {
			g.add(" ")
		}
		g.add(prose[g.random.below(len(prose))])
	}
}

// piece adds a piece of a streamed text of some words.
func (g *generator) piece(words []string) {
	at := g.random.below(len(words))
	for range g.random.between(1, 6) {
		g.add(words[at])
		at = (at + 1) % len(words)
	}
}

func (g *generator) fileName() { g.add(fileNames[g.random.below(len(fileNames))]) }

func (g *generator) command() { g.add(shellCommands[g.random.below(len(shellCommands))]) }
