package tmux

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxChunk bounds what is typed with one command, in bytes.
const maxChunk = 512

// sanitize returns text as it can be typed: valid UTF-8 without control
// characters, which would be keys, but for line breaks.
func sanitize(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// guardLine goes before text that a CLI would take for a command. A blank line
// would not do: some CLIs cut off blanks first.
const guardLine = "Message:\n"

// guard puts a line before text that begins with one of the characters.
func guard(text, commands string) string {
	if first := strings.TrimLeft(text, " \n"); first != "" && strings.ContainsAny(first[:1], commands) {
		return guardLine + text
	}
	return text
}

// chunks cuts text into pieces of at most limit bytes, which must be 4 or more,
// at the borders of characters. What is no character is cut anywhere.
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

// commandLine joins commands to one line for tmux, which takes an argument that
// ends in a semicolon for the end of a command.
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

// maskSecrets returns text with "***" in place of the values of variables that
// hold secrets by their name.
func maskSecrets(environ []string, text string) string {
	var secrets []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		isSecret := strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_SECRET")
		if isSecret && len(value) >= 8 {
			secrets = append(secrets, value)
		}
	}
	// One secret can be part of another.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}
