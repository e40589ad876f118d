package codex

import (
	"strconv"
	"strings"
)

// tomlKeys returns the keys that a TOML text sets, each with the tables it is in, in
// order. Inline tables are one value. It finds the keys of every valid text, and may
// find wrong ones in others; it is for messages only.
func tomlKeys(text string) (keys [][]string) {
	var table []string
	for text != "" {
		line, _, _ := strings.Cut(text, "\n")
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || trimmed[0] == '#':
			text = text[min(len(line)+1, len(text)):]
		case trimmed[0] == '[':
			table, _ = tomlKey(strings.TrimLeft(trimmed, "["))
			text = text[min(len(line)+1, len(text)):]
		default:
			key, rest := tomlKey(text)
			keys = append(keys, append(append([]string{}, table...), key...))
			text = skipTOMLValue(strings.TrimPrefix(strings.TrimLeft(rest, " \t"), "="))
		}
	}
	return keys
}

// tomlKey returns the dotted key at the head of text, and what follows it.
func tomlKey(text string) (key []string, rest string) {
	for {
		text = strings.TrimLeft(text, " \t.")
		if text == "" {
			return key, ""
		}
		end := 0
		switch quote := text[0]; quote {
		case '"', '\'':
			if end = strings.IndexByte(text[1:], quote); end < 0 {
				return key, ""
			}
			name := text[1 : end+1]
			if unquoted, err := strconv.Unquote(`"` + name + `"`); err == nil && quote == '"' {
				name = unquoted
			}
			key, end = append(key, name), end+2
		default:
			end = strings.IndexAny(text, " \t.=]\r\n")
			if end < 0 {
				end = len(text)
			}
			if end == 0 {
				return key, text
			}
			key = append(key, text[:end])
		}
		text = text[end:]
		if after := strings.TrimLeft(text, " \t"); after == "" || after[0] != '.' {
			return key, text
		}
	}
}

// skipTOMLValue returns what follows the line on which the value at the head of text
// ends.
func skipTOMLValue(text string) string {
	for depth := 0; text != ""; {
		switch {
		case strings.HasPrefix(text, `"""`), strings.HasPrefix(text, "'''"):
			text = after(text[3:], text[:3], text[0] == '"')
			continue
		case text[0] == '"' || text[0] == '\'':
			text = after(text[1:], text[:1], text[0] == '"')
			continue
		case text[0] == '#':
			text = text[strings.IndexByte(text+"\n", '\n'):]
			continue
		case text[0] == '[' || text[0] == '{':
			depth++
		case text[0] == ']' || text[0] == '}':
			depth--
		case text[0] == '\n' && depth <= 0:
			return text[1:]
		}
		text = text[1:]
	}
	return ""
}

// after returns what follows the first end in text; with escapes, one after a backslash
// does not count.
func after(text, end string, escapes bool) string {
	for i := 0; i < len(text); i++ {
		if escapes && text[i] == '\\' {
			i++
			continue
		}
		if strings.HasPrefix(text[i:], end) {
			return text[i+len(end):]
		}
	}
	return ""
}
