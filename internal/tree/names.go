package tree

import (
	"path"
	"strings"
	"unicode/utf8"
)

// names selects entries of folders by their name. A file system may ignore case, so
// names that are not patterns ignore it too.
type names struct {
	all      map[string]bool // as they were given
	exact    map[string]bool // in lower case
	patterns []string
	first    [256]bool // bytes that exact begin with, in either case
	longest  int       // of exact, in bytes
}

func newNames(list []string) names {
	n := names{all: map[string]bool{}, exact: map[string]bool{}}
	for _, name := range list {
		switch {
		case name == "" || n.all[name]:
			continue
		case isPattern(name):
			n.patterns = append(n.patterns, name)
		default:
			lower := strings.ToLower(name)
			n.exact[lower] = true
			n.longest = max(n.longest, len(lower))
			n.first[lower[0]], n.first[strings.ToUpper(lower[:1])[0]] = true, true
		}
		n.all[name] = true
	}
	return n
}

// have reports whether everything that list selects is selected.
func (n *names) have(list []string) bool {
	for _, name := range list {
		if !n.all[name] {
			return false
		}
	}
	return true
}

// match reports whether a name is selected. It allocates for rare names alone.
func (n *names) match(name []byte) bool {
	for _, p := range n.patterns {
		if ok, _ := path.Match(p, string(name)); ok {
			return true
		}
	}
	switch {
	case len(name) == 0 || name[0] < utf8.RuneSelf && !n.first[name[0]]:
		return false
	case len(name) > utf8.UTFMax*n.longest:
		return false
	}
	var buf [256]byte
	if len(name) > len(buf) {
		return n.fold(name)
	}
	for i, c := range name {
		if c >= utf8.RuneSelf {
			return n.fold(name)
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return n.exact[string(buf[:len(name)])]
}

// fold compares by the rules of Unicode, as file systems do.
func (n *names) fold(name []byte) bool {
	text := string(name)
	for exact := range n.exact {
		if strings.EqualFold(exact, text) {
			return true
		}
	}
	return false
}
