package policy

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
)

// Limits of what is read.
const (
	maxFiles    = 100  // of one request
	maxPath     = 4096 // bytes of a name
	maxElements = 256  // of a name
	maxPattern  = 32   // elements of a pattern
)

// file is a file that a request names.
type file struct {
	names  []string // as the agent writes it, absolute
	places []string // where it is, without links
}

// realDir returns the absolute form of dir without links, or "" if that is unknown.
func realDir(dir string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	physical, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	return physical
}

// locate returns the file with a name and whether a rule may accept it.
func (j *judge) locate(name string) (f *file, known bool) {
	if len(name) > maxPath || strings.Count(name, "/") > maxElements {
		return &file{}, false
	}
	written := name
	if !path.IsAbs(name) {
		written = j.start.Workdir + "/" + name
	}
	f = &file{names: []string{path.Clean(written)}}
	places, plain := j.start.Locate(name)
	if places == nil {
		return f, false
	}
	f.places = places
	return f, j.base != "" && (plain || j.kind == agent.ToolRead)
}

// matchPath reports whether a rule names a file. Place is that of the rule.
func (j *judge) matchPath(r *Rule, rule place, f *file) bool {
	if r.Decision == Accept {
		return len(f.places) > 0 && !slices.ContainsFunc(f.places, func(name string) bool { return !rule.has(name) })
	}
	rules := []place{rule, newPlace(j.start.Workdir, r.Path)}
	if !rule.pattern {
		for _, found := range instructions.Within("/", rules[1].path) {
			rules = append(rules, place{path.Join("/", found), false, rule.folder})
		}
	}
	for _, rule := range rules {
		rule.path = fold(rule.path)
		for _, name := range slices.Concat(f.names, f.places) {
			if rule.has(fold(name)) {
				return true
			}
		}
	}
	return false
}

// place is what the path of a rule means: a file, a folder or a pattern.
type place struct {
	path            string // absolute, without . and .. and a slash at the end
	pattern, folder bool
}

// newPlace returns the place of a rule in a workdir.
func newPlace(workdir, name string) place {
	p := place{pattern: isPattern(name), folder: strings.HasSuffix(name, "/")}
	switch {
	case path.IsAbs(name):
		workdir = ""
	case p.pattern:
		workdir = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(workdir)
	}
	p.path = strings.TrimSuffix(workdir, "/") + strings.TrimSuffix(path.Join("/", name), "/")
	return p
}

// class returns how specific the place is.
func (p place) class() (class, length int) {
	switch {
	case p.pattern:
		return classPattern, 0
	case p.folder:
		return classBeginning, len(p.path)
	}
	return classFile, 0
}

// has reports whether name, which is absolute, is the place or in it.
func (p place) has(name string) bool {
	switch {
	case p.pattern:
		return matchElements(strings.Split(p.path, "/"), strings.Split(name, "/"))
	case p.folder:
		return name == p.path || strings.HasPrefix(name, p.path+"/")
	}
	return name == p.path
}

func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// checkPath returns why a rule cannot have a path.
func checkPath(name string) error {
	switch {
	case len(name) > maxPath || strings.ContainsRune(name, 0):
		return errors.New("the path is too long, or has a zero byte")
	case strings.HasPrefix(name, "~") || strings.HasPrefix(name, "$"):
		return fmt.Errorf("the path %q is not read as in a shell; write it out", name)
	case strings.Contains(name, `\`):
		return fmt.Errorf("the path %q has a backslash", name)
	case isPattern(name) && strings.HasSuffix(name, "/"):
		return fmt.Errorf("the pattern %q ends in a slash; end it in /** for everything in a folder", name)
	}
	if isPattern(name) && strings.Count(name, "/") > maxPattern {
		return fmt.Errorf("the pattern %q has more than %d elements", name, maxPattern)
	}
	for element := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		if element == ".." {
			return fmt.Errorf("the path %q has the element %q", name, element)
		}
		if _, err := path.Match(element, ""); err != nil {
			return fmt.Errorf("the pattern %q: %w", name, err)
		}
	}
	return nil
}

// matchElements matches a pattern element by element, ** for any number of them.
func matchElements(pattern, elements []string) bool {
	// reached[i] reports whether the pattern up to here matches the first i elements.
	reached := make([]bool, len(elements)+1)
	reached[0] = true
	for _, p := range pattern {
		next := make([]bool, len(elements)+1)
		for i := range reached {
			switch {
			case p == "**":
				next[i] = reached[i] || i > 0 && next[i-1]
			case i > 0 && reached[i-1]:
				next[i], _ = path.Match(p, elements[i-1])
			}
		}
		reached = next
	}
	return reached[len(elements)]
}

// fold returns a name without case and without what shows nothing.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}
