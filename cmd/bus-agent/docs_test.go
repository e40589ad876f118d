package main

import (
	"bytes"
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/busdk/bus-agent/internal/commands"
)

var update = flag.Bool("update", false, "write docs/cli.md or docs/compatibility.md anew")

// purposes groups the commands of the program in the order of docs/cli.md, which also
// shows the commands below them.
var purposes = []struct {
	title    string
	commands []string
}{
	{"Run agents", []string{"run", "chat", "mcp"}},
	{"Background sessions", []string{"session"}},
	{"Editors", []string{"acp"}},
	{"Records of runs", []string{"runs"}},
	{"Prompts and output", []string{"render", "format"}},
	{"Runtimes and projects", []string{"detect", "doctor", "verify", "runtime", "instructions"}},
	{"Settings", []string{"config", "set", "unset"}},
	{"Program", []string{"completion", "help", "version"}},
}

const referenceTitle = `# The command line of bus-agent

Each section shows the help of a command without what holds for several commands. That is
shown once: for all commands in the section [bus-agent](#bus-agent), for a group of
commands in the section of the group. ` + "`bus-agent help COMMAND`" + ` prints all of it.
` + "`go test ./cmd/bus-agent -run TestReferenceIsUpToDate -update`" + ` writes this page.

With --format json, every command that reports something prints JSON. These have no JSON
form: render, format, completion and help print text, runs export and runs report write a
file, chat and session attach use the terminal, acp and mcp speak their protocols, and the
rest print nothing.

`

func TestReferenceIsUpToDate(t *testing.T) {
	t.Parallel()
	checkPage(t, "cli.md", reference(t), "this test with -update")
}

// checkPage compares a page of docs, which the command makes, with what it should be. With
// -update it writes the page.
func checkPage(t *testing.T, page, want, command string) {
	t.Helper()
	name := filepath.Join("..", "..", "docs", page)
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("docs/%s is out of date; run %s and review the change", page, command)
	}
}

func TestReferenceBeginsWithAScreenOfContents(t *testing.T) {
	t.Parallel()
	page := reference(t)
	contents, _, _ := strings.Cut(page, "\n## ")
	if lines := strings.Count(contents, "\n") + 1; lines > 45 {
		t.Errorf("the contents have %d lines; a screen has 45", lines)
	}
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(page, -1) {
		anchors[anchor(m[1])] = true
	}
	linked := map[string]bool{}
	for _, m := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(contents, -1) {
		linked[m[1]] = true
	}
	if len(anchors) < 50 {
		t.Fatalf("only %d sections", len(anchors))
	}
	for a := range anchors {
		if !linked[a] {
			t.Errorf("the contents have no link to #%s", a)
		}
	}
	for a := range linked {
		if !anchors[a] {
			t.Errorf("there is no section #%s", a)
		}
	}
}

// The help of every command fits a terminal of 100 columns.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	for _, s := range sections(t) {
		lines := []string{s.summary}
		for _, b := range s.blocks {
			lines = append(lines, strings.Split(b.text, "\n")...)
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > 100 {
				t.Errorf("%s has a line of %d columns: %s", s.name(), n, line)
			}
		}
	}
}

// A flag that is left out of a section is described in another.
func TestReferenceHasEveryFlag(t *testing.T) {
	t.Parallel()
	page := strings.Join(strings.Fields(reference(t)), " ")
	count := 0
	for _, s := range sections(t) {
		for _, b := range s.blocks {
			for _, f := range b.flags {
				count++
				if !strings.Contains(page, f.key()) {
					t.Errorf("%s: the page lacks %s", s.name(), f.key())
				}
			}
		}
	}
	if count < 100 {
		t.Fatalf("only %d flags found", count)
	}
}

// A helpSection is the help of one command.
type helpSection struct {
	path    []string
	summary string
	blocks  []helpBlock // from the usage to the exit codes
}

// A helpBlock is what empty lines separate in a help. Its title is its first line.
type helpBlock struct {
	title, text string
	flags       []helpFlag
}

// A helpFlag is a flag in a help: its names and value, and its description on one line.
type helpFlag struct{ name, about string }

func (f helpFlag) key() string { return f.name + " " + f.about }

func (s *helpSection) name() string { return nameOf(s.path) }

func nameOf(path []string) string {
	if len(path) == 0 {
		return "bus-agent"
	}
	return strings.Join(path, " ")
}

// block returns the text of the block with the title, without its title.
func (s *helpSection) block(title string) string {
	for _, b := range s.blocks {
		if b.title == title {
			return strings.TrimPrefix(b.text, title+"\n")
		}
	}
	return ""
}

// below returns the names of the commands below s.
func (s *helpSection) below() (names []string) {
	for line := range strings.Lines(s.block("Commands:")) {
		if line[2] != ' ' {
			names = append(names, strings.Fields(line)[0])
		}
	}
	return names
}

// repeats reports whether s and other are the help of one command by two names.
func (s *helpSection) repeats(other *helpSection) bool {
	return s.summary == other.summary && slices.EqualFunc(s.blocks[1:], other.blocks[1:], func(a, b helpBlock) bool { return a.text == b.text })
}

// sections returns the help of all commands in the order of the page.
func sections(t *testing.T) []*helpSection {
	t.Helper()
	all := []*helpSection{readHelp(t)}
	var listed []string
	for _, p := range purposes {
		for _, c := range p.commands {
			listed = append(listed, c)
			all = append(all, tree(t, c)...)
		}
	}
	slices.Sort(listed)
	if have := slices.Sorted(slices.Values(all[0].below())); !slices.Equal(listed, have) {
		t.Fatalf("purposes has the commands %q, the program %q", listed, have)
	}
	return all
}

// tree returns the help of the command that path names and of all below it.
func tree(t *testing.T, path ...string) []*helpSection {
	t.Helper()
	s := readHelp(t, path...)
	all := []*helpSection{s}
	for _, word := range s.below() {
		all = append(all, tree(t, append(slices.Clip(path), word)...)...)
	}
	return all
}

func readHelp(t *testing.T, path ...string) *helpSection {
	t.Helper()
	var out, errs bytes.Buffer
	code := commands.Main(t.Context(), &commands.Env{
		Args: append([]string{"help"}, path...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Dir: t.TempDir(),
	})
	head, body, found := strings.Cut(out.String(), "\n\nUsage:\n")
	if code != 0 || !found {
		t.Fatalf("help %q: %s%s", path, errs.String(), out.String())
	}
	_, summary, _ := strings.Cut(strings.Join(strings.Fields(head), " "), " - ")
	s := &helpSection{path: path, summary: summary}
	for text := range strings.SplitSeq(strings.TrimRight(body, "\n"), "\n\n") {
		b := helpBlock{text: text}
		b.title, _, _ = strings.Cut(text, "\n")
		if strings.HasSuffix(strings.ToLower(b.title), "flags:") {
			b.flags = readFlags(text[len(b.title)+1:])
		}
		s.blocks = append(s.blocks, b)
		if b.title == "Exit codes:" { // what follows is the same everywhere
			break
		}
	}
	return s
}

func readFlags(text string) (flags []helpFlag) {
	for line := range strings.Lines(text + "\n") {
		if strings.HasPrefix(line, "  -") {
			name, _, _ := strings.Cut(line[2:], "  ")
			flags = append(flags, helpFlag{name: name, about: strings.TrimSpace(line[2+len(name):])})
		} else {
			flags[len(flags)-1].about += " " + strings.TrimSpace(line)
		}
	}
	return flags
}

// A referencePage is docs/cli.md.
type referencePage struct {
	strings.Builder
	all    []*helpSection
	byName map[string]*helpSection
	alias  map[*helpSection]*helpSection // commands that are other names of commands
	shared map[string]string             // name of the section that describes a flag, by its name and description
}

// reference returns docs/cli.md.
func reference(t *testing.T) string {
	t.Helper()
	p := &referencePage{all: sections(t), byName: map[string]*helpSection{}, alias: map[*helpSection]*helpSection{}}
	for i, s := range p.all {
		p.byName[s.name()] = s
		if j := slices.IndexFunc(p.all[:i], s.repeats); j >= 0 {
			p.alias[s] = p.all[j]
		}
	}
	p.share()
	p.WriteString(referenceTitle)
	p.contents()
	for _, s := range p.all {
		p.section(s)
	}
	return p.String()
}

// flags yields all flags of commands and their commands.
func (p *referencePage) flags() iter.Seq2[helpFlag, *helpSection] {
	return func(yield func(helpFlag, *helpSection) bool) {
		for _, s := range p.all {
			for _, b := range s.blocks {
				for _, f := range b.flags {
					if p.alias[s] == nil && !yield(f, s) {
						return
					}
				}
			}
		}
	}
}

// share moves each flag that several commands have to the closest section above them.
func (p *referencePage) share() {
	users := map[string][][]string{}
	for f, s := range p.flags() {
		users[f.key()] = append(users[f.key()], s.path)
	}
	p.shared = map[string]string{}
	taken := map[[2]string]string{} // descriptions by section and flag
	for f := range p.flags() {
		paths := users[f.key()]
		if len(paths) == 1 {
			continue
		}
		above := paths[0]
		for _, path := range paths {
			n := 0
			for n < min(len(above), len(path)) && above[n] == path[n] {
				n++
			}
			above = above[:n]
		}
		at := [2]string{nameOf(above), f.name}
		if taken[at] == "" {
			taken[at] = f.about
		}
		if taken[at] == f.about {
			p.shared[f.key()] = nameOf(above)
		}
	}
}

// anchor returns the anchor of the section with a name.
func anchor(name string) string { return strings.ReplaceAll(name, " ", "-") }

// linkTo returns a link to the section of a command. It shows its last word.
func linkTo(path []string) string {
	return fmt.Sprintf("[%s](#%s)", path[len(path)-1], anchor(nameOf(path)))
}

func (p *referencePage) contents() {
	p.WriteString("- [Global flags, exit codes, flags of several commands](#bus-agent)\n")
	for _, purpose := range purposes {
		var lists []string
		for _, c := range purpose.commands {
			var below []string
			for _, s := range p.all {
				if len(s.path) > 1 && s.path[0] == c {
					below = append(below, linkTo(s.path))
				}
			}
			list := linkTo([]string{c})
			if len(below) > 0 {
				list += ": " + strings.Join(below, " ")
			}
			lists = append(lists, list)
		}
		p.WriteString(fold("- ", "**"+purpose.title+"**: "+strings.Join(lists, " · "), 2) + "\n")
	}
}

// fold appends words to line and begins a new line, indented by margin, before each word
// that would end behind column 95.
func fold(line, text string, margin int) string {
	width := len(line)
	for _, word := range strings.Fields(text) {
		switch {
		case width > margin && width+1+len(word) > 95:
			line += "\n" + strings.Repeat(" ", margin)
			width = margin
		case width > margin:
			line += " "
			width++
		}
		line += word
		width += len(word)
	}
	return line
}

func (p *referencePage) section(s *helpSection) {
	fmt.Fprintf(p, "\n## %s\n\n", s.name())
	if other := p.alias[s]; other != nil {
		fmt.Fprintf(p, "The same as %s.\n", linkTo(other.path))
		return
	}
	var texts []string
	for i, b := range s.blocks {
		switch {
		case i == 0:
			b.text = strings.TrimSpace(b.text)
		case len(s.path) == 0:
		case b.title == "Commands:": // each has its section
			b.text = ""
		case len(b.flags) > 0:
			b.text = p.own(b)
		case b.title == "Exit codes:":
			b.text = p.exitCodes(s)
		}
		if b.text != "" {
			texts = append(texts, b.text)
		}
	}
	if text := layOut("Flags of several commands:", p.describedIn(s.name())); text != "" {
		texts = append(texts, text)
	}
	fmt.Fprintf(p, "%s.\n\n```text\n%s\n```\n", strings.ToUpper(s.summary[:1])+s.summary[1:], strings.Join(texts, "\n\n"))
	p.others(s)
}

// own returns the flags of a block that no other command has.
func (p *referencePage) own(b helpBlock) string {
	flags := slices.DeleteFunc(slices.Clone(b.flags), func(f helpFlag) bool { return p.shared[f.key()] != "" })
	return layOut(b.title, flags)
}

// layOut returns a block of flags below a title, or "" without a flag.
func layOut(title string, flags []helpFlag) string {
	if len(flags) == 0 {
		return ""
	}
	width := 0
	for _, f := range flags {
		width = max(width, len(f.name)+4)
	}
	text := title
	for _, f := range flags {
		text += "\n" + fold(fmt.Sprintf("%-*s", width, "  "+f.name), f.about, width)
	}
	return text
}

// exitCodes returns the exit codes of s, or "" if a failure is the same as above s.
func (p *referencePage) exitCodes(s *helpSection) string {
	codes := strings.SplitAfter(s.block("Exit codes:")+"\n", "\n")
	above := p.byName[nameOf(s.path[:len(s.path)-1])].block("Exit codes:") + "\n"
	if strings.HasSuffix(above, strings.Join(codes[1:], "")) {
		return ""
	}
	return strings.TrimRight("Exit codes:\n"+strings.Join(codes[:len(codes)-2], ""), "\n")
}

// describedIn returns the flags that the named section describes for the commands below it.
func (p *referencePage) describedIn(name string) (flags []helpFlag) {
	for f := range p.flags() {
		if p.shared[f.key()] == name && !slices.Contains(flags, f) {
			flags = append(flags, f)
		}
	}
	slices.SortFunc(flags, func(a, b helpFlag) int { return strings.Compare(a.name, b.name) })
	return flags
}

// others names the flags of s that sections above it describe.
func (p *referencePage) others(s *helpSection) {
	names := map[string][]string{}
	for _, b := range s.blocks {
		for _, f := range b.flags {
			if owner := p.shared[f.key()]; owner != "" {
				name, _, _ := strings.Cut(f.name, " ")
				names[owner] = append(names[owner], "`"+strings.Trim(name, ",")+"`")
			}
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(names)) {
		p.WriteString("\n" + fold("", fmt.Sprintf("Flags that [%s](#%s) describes: %s.", owner, anchor(owner), strings.Join(names[owner], ", ")), 0) + "\n")
	}
}
