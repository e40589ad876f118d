package engine

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/unix"
)

// MayEdit reports whether access permits changing the files in names: whether an
// engine accepts the agent's request for it without asking the user. Full access
// permits every change. Write access permits a change if all of the following hold
// for every name; anything else, including an empty list of names, becomes an
// approval request.
//
//   - It leads to a regular file, or to one that does not exist yet, inside the
//     workdir or one of Request.AddDirs, as [instructions.Within] decides. A
//     relative name is relative to the workdir.
//   - Programs agree on what it means: not a URI, "~", a variable, a backslash, a
//     percent escape, or a component with space around it or a dot behind it.
//   - The file has one name only: a second one (a hard link) can be anywhere.
//   - It is not protected: below anything named .git, in a folder that Git takes
//     for a repository, named HEAD, or below a name in Protected.
//
// It is called before the agent writes. A link that the agent's own commands
// replace between the two leads elsewhere.
func (s Start) MayEdit(access agent.Access, names []string) bool {
	if access != agent.AccessWrite {
		return access == agent.AccessFull
	}
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !s.mayEdit(name) })
}

func (s Start) mayEdit(name string) bool {
	if isAmbiguous(name) {
		return false
	}
	name = s.abs(name)
	for _, dir := range append([]string{s.Workdir}, s.AddDirs...) {
		if places := instructions.Within(dir, name); places != nil {
			return !slices.ContainsFunc(places, func(place string) bool { return !s.isPlain(dir, place) })
		}
	}
	return false
}

// Places identifies the files that names lead to at this moment. What the user accepts for
// the session is accepted for them, since the agent's commands can make a name lead
// elsewhere. It is empty if it is unknown where a name leads, for the reasons of
// [Start.MayEdit], or if a file is not regular or has more than one name. Then nothing is
// accepted for the session.
func (s Start) Places(names []string) string {
	var places []string
	for _, name := range names {
		if isAmbiguous(name) {
			return ""
		}
		found := instructions.Within("/", s.abs(name))
		if found == nil || slices.ContainsFunc(found, func(place string) bool { return !hasOneName("/" + place) }) {
			return ""
		}
		places = append(places, found...)
	}
	slices.Sort(places)
	return strings.Join(slices.Compact(places), "\x00")
}

// Locate returns where a file that an agent names is at this moment: absolute paths
// without links, several where programs differ on what the name means. It returns nil if
// that is unknown, for the reasons of [Start.MayEdit]. Plain reports that the file is a
// regular one with one name, or absent, and not protected.
func (s Start) Locate(name string) (places []string, plain bool) {
	if isAmbiguous(name) {
		return nil, false
	}
	found := instructions.Within("/", s.abs(name))
	for _, place := range found {
		places = append(places, path.Join("/", place))
	}
	return places, found != nil && !slices.ContainsFunc(found, func(place string) bool { return !s.isPlain("/", place) })
}

func (s Start) abs(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return s.Workdir + "/" + name
}

// hasOneName reports whether a file is a regular one with one name, or absent.
func hasOneName(name string) bool {
	info, err := os.Lstat(name)
	return err != nil || info.Mode().IsRegular() && !hasOtherNames(info)
}

// ambiguous is what programs make different things of. It is compiled when it is first
// used: that takes a third of the time in which the program starts.
var ambiguous = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[~$%]|^[A-Za-z][A-Za-z0-9+.-]*:|\\|%[0-9A-Fa-f]{2}`)
})

func isAmbiguous(name string) bool {
	if name == "" || ambiguous().MatchString(name) {
		return true
	}
	for component := range strings.SplitSeq(name, "/") {
		if strings.TrimSpace(component) != component || strings.HasSuffix(component, ".") && component != "." && component != ".." {
			return true
		}
	}
	return false
}

// isPlain reports whether place, which is below dir and has no links in it, is a
// regular file with one name, or absent, and is not protected.
func (s Start) isPlain(dir, place string) bool {
	if !hasOneName(filepath.Join(dir, filepath.FromSlash(place))) {
		return false
	}
	if fold(path.Base(place)) == fold("HEAD") { // makes a folder a repository
		return false
	}
	parts := strings.Split(place, "/")
	for i := range parts {
		if isRepository(filepath.Join(dir, filepath.Join(parts[:i]...))) {
			return false
		}
		if s.endsProtected(dir, parts[:i+1]) {
			return false
		}
	}
	return true
}

// alwaysProtected are what git, shells, editors and hosts of agents run.
var alwaysProtected = []string{".git", "git~1", ".envrc", ".lsp.json", ".vscode/mcp.json", ".gastown"}

// endsProtected reports whether the last parts of a path below dir are a protected name.
func (s Start) endsProtected(dir string, parts []string) bool {
	return slices.ContainsFunc(slices.Concat(alwaysProtected, s.Protected), func(name string) bool {
		elements := strings.Split(name, "/")
		begin := len(parts) - len(elements)
		if begin < 0 {
			return false
		}
		if slices.EqualFunc(parts[begin:], elements, func(a, b string) bool { return fold(a) == fold(b) }) {
			return true
		}
		return isSame(filepath.Join(dir, filepath.Join(parts...)), filepath.Join(dir, filepath.Join(parts[:begin]...), filepath.FromSlash(name)))
	})
}

// hasOtherNames reports whether a file has hard links, or whether that is unknown.
func hasOtherNames(info fs.FileInfo) bool {
	s, ok := info.Sys().(*unix.SysStat)
	return !ok || s.Nlink != 1
}

// isRepository reports whether Git takes dir for a repository, bare or the .git of
// one, and runs what its configuration says.
func isRepository(dir string) bool {
	return !slices.ContainsFunc([]string{"HEAD", "objects", "refs"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err != nil
	})
}

// isSame reports whether two names are of one file, as on a file system that
// ignores case or has short forms of names.
func isSame(a, b string) bool {
	of := func(name string) fs.FileInfo {
		info, err := os.Stat(name)
		if err != nil {
			return nil
		}
		return info
	}
	first, second := of(a), of(b)
	return first != nil && second != nil && os.SameFile(first, second)
}

// fold returns a name such that names which any file system reads as the same are
// equal: without case, what shows nothing, and dots and spaces behind it.
func fold(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
	return strings.TrimRight(name, ". ")
}
