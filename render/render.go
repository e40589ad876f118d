// Package render fills in prompt templates.
//
// A template is text with placeholders of the form {{NAME}}, where NAME is
// [A-Za-z_][A-Za-z0-9_]*, case-sensitive. Rendering is strict, so that no agent
// starts with an incomplete prompt: text that only looks like a placeholder is an
// error.
//
//   - Every {{NAME}} is replaced by its value, anywhere: "{{{A}}}" is
//     a value between two braces.
//   - Any other "{{" that is followed by "}}", however far away, is an error:
//     "{{ A }}", "{{}}", "{{a-b}}", "{{ {{A}} }}".
//   - A "{{" that no "}}" follows and a "}}" that no "{{" precedes are text:
//     "{{A}", "a }} b", "{{ {{A}}".
//   - Values are opaque. Nothing in them is expanded, and braces in them never
//     combine with braces of the template.
//   - All other bytes are unchanged.
package render

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
)

const (
	opening = "{{"
	closing = "}}"
)

// MaxLength is the longest text that [Render] returns, in bytes. A template can name a
// value many times, so its own length does not bound the text.
const MaxLength = 64 << 20

// Render returns template with every placeholder replaced by its value in vars.
// A value may be empty; one that the template does not use is ignored. Neither
// argument is changed.
//
// All errors are of kind [agent.ErrUsage]. They name the tokens that are not
// placeholders and the placeholders without a value. A text longer than
// [MaxLength] is an error, before it is built.
func Render(template string, vars map[string]string) (string, error) {
	pieces, wrong := parse(template)
	var missing []string
	for _, name := range namesOf(pieces) {
		if _, ok := vars[name]; !ok {
			missing = append(missing, shorten(opening+name+closing))
		}
	}
	if len(missing) > 0 {
		wrong = append(wrong, "has no value for "+strings.Join(atMost(20, missing), ", "))
	}
	if err := templateError(wrong); err != nil {
		return "", err
	}

	length := 0
	for _, p := range pieces {
		if length += len(p.text) + len(vars[p.name]); length > MaxLength {
			return "", agent.Usagef("the template with its values is longer than %d MiB", MaxLength>>20)
		}
	}
	var out strings.Builder
	out.Grow(length)
	for _, p := range pieces {
		out.WriteString(p.text)
		if p.name != "" {
			out.WriteString(vars[p.name])
		}
	}
	return out.String(), nil
}

// Names returns the names of the placeholders in template, each once, in the order of
// their first use. Its errors are those of [Render] that do not depend on values.
func Names(template string) ([]string, error) {
	pieces, wrong := parse(template)
	if err := templateError(wrong); err != nil {
		return nil, err
	}
	return namesOf(pieces), nil
}

// templateError returns an error with everything that is wrong with a template.
func templateError(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	return agent.Usagef("template %s", strings.Join(wrong, "; "))
}

// atMost returns the first n of list, and how many more there are.
func atMost(n int, list []string) []string {
	if more := len(list) - n; more > 0 {
		return append(list[:n:n], fmt.Sprintf("and %d more", more))
	}
	return list
}

func namesOf(pieces []piece) []string {
	var names []string
	seen := make(map[string]bool)
	for _, p := range pieces {
		if p.name != "" && !seen[p.name] {
			seen[p.name] = true
			names = append(names, p.name)
		}
	}
	return names
}

// A piece of a template is text and the placeholder after it. Only the last piece has
// an empty name.
type piece struct {
	text string
	name string
}

// parse returns the pieces of a template, and what is wrong with each token that is not
// a placeholder.
func parse(template string) (pieces []piece, wrong []string) {
	var rest strings.Builder // the template with its placeholders blanked out
	start, at := 0, 0
	for {
		i := strings.Index(template[at:], opening)
		if i < 0 {
			break
		}
		at += i
		name, ok := nameAt(template[at+len(opening):])
		if !ok {
			at++ // the second brace may begin a placeholder
			continue
		}
		pieces = append(pieces, piece{text: template[start:at], name: name})
		rest.WriteString(template[start:at])
		start = at
		at += len(opening) + len(name) + len(closing)
		rest.WriteString(strings.Repeat("x", at-start))
		start = at
	}
	pieces = append(pieces, piece{text: template[start:]})
	rest.WriteString(template[start:])
	wrong, misnamed := unresolved(template, rest.String())
	if misnamed {
		wrong = append(wrong, "write "+opening+"NAME"+closing+" with letters, digits and underscores")
	}
	return pieces, wrong
}

// nameAt returns the name of the placeholder whose opening braces are right before s.
func nameAt(s string) (string, bool) {
	n := 0
	for n < len(s) && isNameByte(s[n], n == 0) {
		n++
	}
	return s[:n], n > 0 && strings.HasPrefix(s[n:], closing)
}

func isNameByte(c byte, first bool) bool {
	switch {
	case c == '_', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		return true
	default:
		return !first && '0' <= c && c <= '9'
	}
}

// unresolved describes each pair of braces that would remain after every placeholder got
// its value, after the first ones only their number. rest is template with its placeholders
// blanked out. misnamed reports that one has something else than a name inside.
func unresolved(template, rest string) (wrong []string, misnamed bool) {
	const most = 10
	found, line, counted := 0, 1, 0 // line is that of counted
	for at := 0; ; {
		length := -1
		open := strings.Index(rest[at:], opening)
		if open >= 0 {
			length = strings.Index(rest[at+open+len(opening):], closing)
		}
		if length < 0 {
			if found > most {
				wrong = append(wrong, fmt.Sprintf("and %d more", found-most))
			}
			return wrong, misnamed
		}
		end := at + open + len(opening) + length
		// The nearest opening braces make the error name the smallest token.
		open = at + strings.LastIndex(rest[at:end], opening)
		at = end + len(closing)
		inside := strings.TrimSpace(template[open+len(opening) : end])
		name, ok := nameAt(inside + closing)
		isName := ok && name == inside
		misnamed = misnamed || !isName
		if found++; found > most {
			continue
		}
		line += strings.Count(template[counted:open], "\n")
		counted = open
		problem := fmt.Sprintf("line %d: %q is not a placeholder", line, shorten(template[open:at]))
		if isName {
			problem += "; write " + shorten(opening+name+closing)
		}
		wrong = append(wrong, problem)
	}
}

// shorten cuts the middle out of a long token: templates hold prompts, and an
// error is one line.
func shorten(token string) string {
	const head, tail, limit = 40, 10, 60
	if len(token) <= limit {
		return token
	}
	// A token begins and ends with braces, so both searches end inside it.
	i, j := head, len(token)-tail
	for !utf8.RuneStart(token[i]) {
		i--
	}
	for !utf8.RuneStart(token[j]) {
		j++
	}
	return token[:i] + "…" + token[j:]
}
