package worktree

import (
	"crypto/rand"
	"encoding/hex"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxBranch = 200 // bytes of the name of a branch
	maxLeaf   = 80  // bytes of a leaf
)

// CheckBranch reports whether name can be the name of a branch, without refs/heads/. It
// has the rules of git check-ref-format --branch without its expansions, and refuses
// more: names that begin with "-", "HEAD", "refs/...", and what is not printable UTF-8.
// The error matches [ErrName].
func CheckBranch(name string) error {
	refuse := func(why string) error {
		return problem(ErrName, "branch %q: %s; choose another name", oneLine(name, 100), why)
	}
	switch {
	case name == "":
		return refuse("it is empty")
	case len(name) > maxBranch:
		return refuse("it is longer than 200 bytes")
	case !utf8.ValidString(name):
		return refuse("it is not UTF-8")
	case name[0] == '-':
		return refuse(`it begins with "-"`)
	case name == "@" || strings.EqualFold(name, "HEAD") || strings.HasPrefix(name, "refs/"):
		return refuse("git reserves it")
	case strings.Contains(name, ".."):
		return refuse(`it contains ".."`)
	case strings.Contains(name, "@{"):
		return refuse(`it contains "@{"`)
	case strings.HasSuffix(name, "."):
		return refuse(`it ends with "."`)
	}
	for _, c := range name {
		if !unicode.IsPrint(c) || strings.ContainsRune(" ~^:?*[\\", c) {
			return refuse("git does not allow one of its characters")
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return refuse("a part between slashes is empty")
		case part[0] == '.' || strings.HasSuffix(strings.ToLower(part), ".lock"):
			return refuse(`a part begins with "." or ends with ".lock"`)
		}
	}
	return nil
}

// checkLeaf reports whether name is safe as one segment of a path.
func checkLeaf(name string) error {
	ok := name != "" && len(name) <= maxLeaf && name[0] != '-' && name[0] != '.'
	for _, c := range []byte(name) {
		ok = ok && (c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if !ok {
		return problem(ErrName, "worktree %q: only letters, digits, \"-\", \"_\" and \".\" inside are allowed; use the ID that Add returned", oneLine(name, 100))
	}
	return nil
}

// newLeaf returns a unique leaf that begins with what is readable of ref.
func newLeaf(ref string) string {
	var slug []byte
	for _, c := range []byte(strings.ToLower(ref)) {
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' {
			slug = append(slug, c)
		} else if len(slug) > 0 && slug[len(slug)-1] != '-' {
			slug = append(slug, '-')
		}
		if len(slug) == 40 {
			break
		}
	}
	var unique [6]byte
	rand.Read(unique[:])
	return strings.Trim("t-"+strings.Trim(string(slug), "-"), "-") + "-" + hex.EncodeToString(unique[:])
}

// checkModulePath reports whether name, of a .gitmodules, is the path of a folder in the
// same tree.
func checkModulePath(name string) error {
	ok := name != "" && len(name) < 1000 && utf8.ValidString(name) && filepath.IsLocal(name) && path.Clean(name) == name && name != "." &&
		!strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) || c == '\\' })
	for part := range strings.SplitSeq(name, "/") {
		ok = ok && part != "" && part[0] != '-' && !strings.EqualFold(part, ".git")
	}
	if !ok {
		return problem(ErrName, ".gitmodules: path %q is not a folder below the superproject; correct it", oneLine(name, 100))
	}
	return nil
}

// isHash reports whether text is the name of an object.
func isHash(text string) bool {
	if len(text) != 40 && len(text) != 64 {
		return false
	}
	for _, c := range []byte(text) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}
