package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

const (
	maxLine     = 32 << 10 // bytes of a command line that is read
	maxCommands = 200      // in a line
)

// commandParts returns the simple commands of a command line, or one part that is not
// known completely. A shell that is called with -c and one text stands for that text.
func commandParts(line string) []part {
	if line == "" || len(line) > maxLine {
		return []part{{mentions: rough(line[:min(len(line), maxLine)])}}
	}
	commands, ok := read(line)
	if ok && len(commands) == 1 {
		if script, isShell := scriptOf(commands[0]); isShell {
			commands, ok = read(script)
		}
	}
	if ok && slices.ContainsFunc(commands, isNested) {
		ok = false
	}
	if !ok {
		return []part{{mentions: rough(line)}}
	}
	list := make([]part, len(commands))
	for i, argv := range commands {
		list[i] = part{known: true, argv: argv, mentions: mentioned(argv)}
	}
	return list
}

// shells are the shells that agents run commands with.
var shells = []string{"bash", "dash", "sh", "zsh"}

// scriptOf returns the text that a shell, called by name or in a folder of the system,
// runs.
func scriptOf(argv []string) (script string, ok bool) {
	dir, name := path.Split(argv[0])
	system := slices.Contains([]string{"", "/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"}, dir)
	if !system || !slices.Contains(shells, name) || len(argv) != 3 || argv[1] != "-c" && argv[1] != "-lc" {
		return "", false
	}
	return argv[2], true
}

// isNested reports whether a command runs a shell in a text that was one already.
func isNested(argv []string) bool {
	_, ok := scriptOf(argv)
	return ok
}

// reserved are words that begin something else than a simple command.
var reserved = strings.Fields("! { } [[ ]] case coproc do done elif else end esac fi for foreach function if in nocorrect repeat select switch then time until while and or not begin -")

// read returns the simple commands of a line, or false if it has anything else than words,
// quoted texts and the operators && || ; | and newline. What shells read in different ways
// is not read at all.
func read(line string) (commands [][]string, ok bool) {
	var argv []string
	for rest := line; ; {
		rest = strings.TrimLeft(rest, " \t")
		operator := 0
		switch {
		case rest == "":
			if argv == nil { // a line may end in ; or a newline
				return commands, len(commands) > 0 && endsStatement(line)
			}
			commands = append(commands, argv)
			return commands, len(commands) <= maxCommands
		case strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "||"):
			operator = 2
		case rest[0] == ';', rest[0] == '|', rest[0] == '\n':
			operator = 1
		}
		if operator > 0 {
			blank := rest[0] == '\n' && argv == nil // an empty line, or a line after an operator
			if !blank && argv == nil || len(commands) > maxCommands {
				return nil, false
			}
			if !blank {
				commands, argv = append(commands, argv), nil
			}
			rest = rest[operator:]
			continue
		}
		word, after, ok := readWord(rest)
		if !ok || argv == nil && (word == "" || slices.Contains(reserved, word) || strings.Contains(word, "=")) {
			return nil, false
		}
		argv, rest = append(argv, word), after
	}
}

// endsStatement reports whether a line ends in ; or a newline, so that nothing is missing.
func endsStatement(line string) bool {
	line = strings.TrimRight(line, " \t\n")
	return line != "" && !strings.HasSuffix(line, "&") && !strings.HasSuffix(line, "|")
}

// readWord returns the word that rest, which is not empty, begins with. It has at least
// one character or quote.
func readWord(rest string) (word, after string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(rest); {
		switch c := rest[i]; {
		case c == '\'' || c == '"':
			text, n, ok := readQuoted(rest[i+1:], c)
			if !ok {
				return "", "", false
			}
			b.WriteString(text)
			i += 1 + n
		case isPlain(c) && !(c == '=' && b.Len() == 0): // zsh replaces =name
			b.WriteByte(c)
			i++
		case strings.IndexByte(" \t\n;|&", c) >= 0 && i > 0:
			return b.String(), rest[i:], true
		default:
			return "", "", false
		}
	}
	return b.String(), "", true
}

// isPlain reports whether every shell reads a character as itself outside of quotes.
func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_-./:@,+%=", c) >= 0
}

// readQuoted returns the text up to the quote, and how many bytes that takes with it. A
// backslash is read between double quotes only, in front of what it makes plain in all
// shells.
func readQuoted(rest string, quote byte) (text string, n int, ok bool) {
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		switch {
		case c == quote:
			text = b.String()
			return text, i + 1, isReadable(text)
		case quote == '"' && c == '\\' && i+1 < len(rest) && strings.IndexByte("\\\"$", rest[i+1]) >= 0:
			i++
			c = rest[i]
		case c == '\\', quote == '"' && strings.IndexByte("$`!", c) >= 0:
			return "", 0, false
		}
		b.WriteByte(c)
	}
	return "", 0, false
}

// isReadable reports whether a text has only characters that a user sees.
func isReadable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r) && r != '\n' && r != '\t'
	})
}

// beginsWith reports whether argv begins with the words of a command.
func beginsWith(argv, command []string) bool {
	return len(argv) >= len(command) && slices.Equal(argv[:len(command)], command)
}

// mentions reports whether argv, which is folded, begins with a command, also by the base
// name of its program.
func mentions(argv, command []string) bool {
	if len(argv) < len(command) {
		return false
	}
	if name := fold(command[0]); argv[0] != name && path.Base(argv[0]) != name {
		return false
	}
	return slices.EqualFunc(argv[1:len(command)], command[1:], func(a, b string) bool { return a == fold(b) })
}

// wrappers are programs that run others.
var wrappers = append(strings.Fields("builtin command doas env eval exec nice nohup setsid stdbuf sudo time timeout xargs"), shells...)

const (
	maxMentions = 1000 // commands that a line mentions
	maxWrapped  = 20   // words of a wrapper that are tried as a command
)

// mentioned returns argv, folded, and what is left of it without assignments and words of
// the shell. Of a program that runs others, each word can begin the other one.
func mentioned(argv []string) [][]string {
	folded := make([]string, len(argv))
	for i, word := range argv {
		folded[i] = fold(word)
	}
	list := [][]string{folded}
	rest := folded
	for len(rest) > 0 && (strings.Contains(rest[0], "=") || isReserved(rest[0])) {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return list
	}
	if len(rest) < len(folded) {
		list = append(list, rest)
	}
	if isWrapper(path.Base(rest[0])) {
		for i := 1; i < min(len(rest), maxWrapped); i++ {
			list = append(list, rest[i:])
		}
	}
	return list
}

func isReserved(folded string) bool {
	return slices.ContainsFunc(reserved, func(word string) bool { return fold(word) == folded })
}

func isWrapper(folded string) bool {
	return slices.ContainsFunc(wrappers, func(word string) bool { return fold(word) == folded })
}

// rough returns what looks like a command in a line that cannot be read.
func rough(line string) (commands [][]string) {
	line = strings.NewReplacer(`\`, "", `'`, "", `"`, "").Replace(line)
	for piece := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(";&|\n\r(){}`<>$", r) }) {
		if argv := strings.Fields(piece); len(argv) > 0 {
			commands = append(commands, mentioned(argv)...)
		}
		if len(commands) >= maxMentions {
			break
		}
	}
	return commands
}
