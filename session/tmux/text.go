package tmux

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxChunk is how many bytes one command types at most.
const maxChunk = 512

// sanitize returns text that can be typed: valid UTF-8 without control characters,
// which would be keys, except for line breaks.
func sanitize(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// guardLine precedes text that a CLI would take for a command. A blank line would not
// do: some CLIs trim their input.
const guardLine = "Message:\n"

// guard puts guardLine before text that begins with one of the characters in commands.
func guard(text, commands string) string {
	if first := strings.TrimLeft(text, " \n"); first != "" && strings.ContainsAny(first[:1], commands) {
		return guardLine + text
	}
	return text
}

// chunks cuts text between characters into pieces of at most limit bytes; limit must be
// 4 or more. Invalid UTF-8 is cut anywhere.
func chunks(text string, limit int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > limit {
			cut := limit
			for cut > limit-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
				cut--
			}
			if cut == limit-utf8.UTFMax {
				cut = limit
			}
			if !yield(text[:cut]) {
				return
			}
			text = text[cut:]
		}
		if text != "" {
			yield(text)
		}
	}
}

// commandLine joins commands into one argument list for tmux. To tmux an argument that
// ends in a semicolon ends a command, so that semicolon is escaped.
func commandLine(commands ...[]string) (args []string) {
	for i, command := range commands {
		if i > 0 {
			args = append(args, ";")
		}
		for _, arg := range command {
			if before, found := strings.CutSuffix(arg, ";"); found {
				arg = before + `\;`
			}
			args = append(args, arg)
		}
	}
	return args
}
