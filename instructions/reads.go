package instructions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/tree"
	"github.com/busdk/bus-agent/internal/unix"
)

// A Read names files below a repository that a CLI reads by itself: context files,
// skills, ignore files. [Chain.CheckReads] takes a table of them.
type Read struct {
	// Name is slash-separated and relative to a folder. Each element is a pattern
	// of path.Match, or "**" for any number of folders, including none.
	Name string

	// Where selects the folders in which the CLI searches for it.
	Where Where

	// Imports reports that "@path" in its text makes the CLI read another file.
	Imports bool

	// Trusted reports that the CLI reads it only in a trusted workspace.
	Trusted bool
}

// Check returns an error for an invalid Name.
func (r Read) Check() error {
	elements := strings.Split(r.Name, "/")
	for _, element := range elements {
		if _, err := path.Match(element, ""); err != nil || element == "" || element == "." || element == ".." {
			return fmt.Errorf("%q is not a path below a folder, such as .mine/skills/*/SKILL.md", r.Name)
		}
	}
	if elements[len(elements)-1] == "**" {
		return fmt.Errorf("%q names folders only; add a name, such as **/*.md", r.Name)
	}
	return nil
}

// Where selects the folders in which a CLI searches for a file.
type Where uint8

const (
	// Upward is the folders from the root of the repository down to the workdir.
	Upward Where = iota
	// Downward is the folders below the workdir.
	Downward
	// Everywhere is both.
	Everywhere
)

// Reads returns a [Read] for each name, all in the same folders.
func Reads(where Where, names ...string) []Read {
	reads := make([]Read, len(names))
	for i, name := range names {
		reads[i] = Read{Name: name, Where: where}
	}
	return reads
}

// everyCLI are the files that every CLI and its git read. gitFiles has those in .git.
var everyCLI = append(Reads(Upward, ".gitmodules", ".mailmap"),
	Reads(Everywhere, ".gitignore", ".gitattributes", ".ignore", ".rgignore")...)

// Bounds of a check.
const (
	// maxEntries bounds the entries of folders that a pattern with several
	// elements is compared with.
	maxEntries = tree.SurveyEntries
	// maxImporters bounds the files that are searched for imports, maxImportDepth
	// the depth of imports, maxImporter the bytes of one file and maxImportBytes
	// of all, and maxTargets their imports.
	maxImporters   = 4000
	maxImportDepth = 16
	maxImporter    = 1 << 20
	maxImportBytes = 64 << 20
	maxTargets     = 1 << 15
	// maxFolders bounds the folders in a row that "**" matches.
	maxFolders = 16
)

// CheckReads checks the files that a CLI in the workdir reads by itself: those of
// reads and those that every CLI may read, in .git too. It does not check those that only
// git reads. With all links followed, each must be a regular file inside the repository;
// in a trusted workspace it may be a regular file elsewhere. A FIFO, a socket and a device
// are always refused, since reading one can block. Missing files and directories are
// accepted. The error is an [agent.ErrUsage] that names the file.
//
// Nothing is opened that can block, and the work is bounded: of more than 500,000
// entries below the workdir, the others are not checked and complete is false. Files
// that are replaced later are not checked. The end of ctx ends the check with its
// cause.
func (c Chain) CheckReads(ctx context.Context, reads []Read, trusted bool) (complete bool, err error) {
	top, dirs := c.reach()
	k := &check{
		ctx: ctx, top: top, root: top, trusted: trusted, limit: maxEntries, importLimit: maxImportBytes,
		imported: map[string]bool{}, repositories: map[string]bool{},
	}
	var down []Read
	for _, r := range slices.Concat(everyCLI, reads) {
		if err := r.Check(); err != nil {
			return false, err
		}
		if r.Trusted && !trusted {
			continue
		}
		if r.Where != Upward {
			down = append(down, r)
		}
		if r.Where == Downward {
			continue
		}
		for _, dir := range dirs {
			if err := k.expand(dir, strings.Split(r.Name, "/"), r, 0); err != nil {
				return false, err
			}
		}
	}
	for _, dir := range dirs {
		if err := k.git(dir); err != nil {
			return false, err
		}
	}
	return k.below(c.Workdir, down)
}

// reach returns the topmost folder in which CLIs search for files, and the folders
// from there to the workdir. Without a repository it is the nearest folder with
// anything named .git.
func (c Chain) reach() (top string, dirs []string) {
	for dir := filepath.Dir(c.Root); c.Root == c.Workdir && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if isRepository(c.Root) {
			break
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			c.Root = dir
			break
		}
	}
	return c.Root, c.Dirs()
}

// A check is one call of CheckReads.
type check struct {
	ctx      context.Context
	top      string // names in messages are relative to it
	root     string // files must be inside it
	trusted  bool
	limit    int // of entries
	entries  int
	imported map[string]bool // files whose imports were checked
	bytes    int             // of them
	targets  int             // of their imports

	importLimit int // of bytes

	repositories map[string]bool // folders with the files of one that were checked
	gitEntries   int             // read there
}

// A reading is a Read, or a file imported by one.
type reading struct {
	Read
	by    string // the file that imports it, as it is shown
	depth int    // how many imports lead to it
}

// expand checks the files in dir that match the rest of a pattern. folders is the
// number of folders that "**" has matched.
func (k *check) expand(dir string, rest []string, r Read, folders int) error {
	switch name := rest[0]; {
	case name == "**":
		if err := k.expand(dir, rest[1:], r, 0); err != nil || folders >= maxFolders {
			return err
		}
		return k.each(dir, func(file string) error { return k.enter(file, rest, r, folders+1) })
	case isPattern(name):
		return k.each(dir, func(file string) error {
			if ok, _ := path.Match(name, filepath.Base(file)); !ok {
				return nil
			}
			return k.match(file, rest[1:], r)
		})
	default:
		return k.match(filepath.Join(dir, name), rest[1:], r)
	}
}

// match checks file, which matches an element of a pattern.
func (k *check) match(file string, rest []string, r Read) error {
	if len(rest) > 0 {
		return k.enter(file, rest, r, 0)
	}
	return k.file(file, reading{Read: r})
}

// enter checks the files in a folder that match the rest of a pattern. It ignores
// anything but a folder.
func (k *check) enter(file string, rest []string, r Read, folders int) error {
	if err := k.over(); err != nil {
		return err
	}
	info, err := os.Lstat(file)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if info, err = os.Stat(file); err == nil && info.IsDir() && !Contains(k.root, file) {
			if _, err := os.Lstat(filepath.Join(file, literal(rest))); k.trusted || err != nil {
				return nil // missing, or not of the repository
			}
			return k.leadsOut(file, reading{Read: r})
		}
	}
	if err != nil || !info.IsDir() {
		return nil
	}
	return k.expand(file, rest, r, folders)
}

// literal returns the elements of a pattern before the first that is not a name.
func literal(rest []string) string {
	i := slices.IndexFunc(rest, isPattern)
	if i < 0 {
		i = len(rest)
	}
	return filepath.Join(rest[:i]...)
}

func isPattern(element string) bool { return strings.ContainsAny(element, `*?[\`) }

// each calls found with the path of each entry of dir until it returns an error.
func (k *check) each(dir string, found func(file string) error) error {
	for _, entry := range k.list(dir) {
		if err := k.over(); err != nil {
			return err
		}
		if err := found(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	if k.entries > k.limit && !k.trusted {
		return agent.Usagef("%s has too many entries to be checked; remove some or use --trust-workspace", k.name(dir))
	}
	return nil
}

// over returns the error that ends the check. It is called for each file, since a
// repository decides how many there are.
func (k *check) over() error {
	if k.ctx.Err() == nil {
		return nil
	}
	return context.Cause(k.ctx)
}

// list returns the entries of dir that may be read.
func (k *check) list(dir string) []fs.DirEntry {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil // missing, or the CLI cannot read it either
	}
	defer f.Close()
	entries, _ := f.ReadDir(max(k.limit-k.entries, 0) + 1)
	k.entries += len(entries)
	return entries
}

// file checks one file, which need not exist, in a folder that is known to be inside.
func (k *check) file(file string, r reading) error {
	if err := k.over(); err != nil {
		return err
	}
	info, err := os.Lstat(file)
	if err != nil {
		return nil // missing, or the CLI cannot read it either
	}
	isLink := info.Mode()&fs.ModeSymlink != 0
	if isLink {
		info, err = os.Stat(file)
	}
	switch {
	case err == nil && info.IsDir(), errors.Is(err, syscall.ELOOP):
		return nil
	case err == nil && !info.Mode().IsRegular():
		return agent.Usagef("%s is not a regular file, and reading it could block; remove it", k.shown(file, r))
	case (isLink || r.depth > 0) && !k.trusted && !Contains(k.root, file):
		return k.leadsOut(file, r)
	case err == nil && r.Imports:
		return k.imports(file, r)
	}
	return nil
}

func (k *check) leadsOut(file string, r reading) error {
	how := "leads out of the repository"
	if target, err := os.Readlink(file); err == nil {
		how = "is a link to " + display(target) + ", outside of the repository"
	}
	return agent.Usagef("%s %s, and the agent would read it by itself; remove it or use --trust-workspace", k.shown(file, r), how)
}

// name returns a path for messages: relative to the top if it is below that.
func (k *check) name(file string) string {
	if rel, err := filepath.Rel(k.top, file); err == nil && filepath.IsLocal(rel) {
		file = filepath.ToSlash(rel)
	}
	return display(file)
}

// shown is name with the importing file.
func (k *check) shown(file string, r reading) string {
	if r.by == "" {
		return k.name(file)
	}
	return k.name(file) + ", which " + r.by + " imports,"
}

// imports checks the files that a context file imports. CLIs differ in their syntax of
// imports, so everything that may be one is checked.
func (k *check) imports(file string, r reading) error {
	if k.imported[file] {
		return nil
	}
	k.imported[file] = true
	if len(k.imported) > maxImporters || r.depth > maxImportDepth || k.bytes > k.importLimit || k.targets > maxTargets {
		return k.uncheckable(file, "imports too many files")
	}
	physical, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil
	}
	text, err := readImporter(physical)
	switch {
	case errors.Is(err, ErrTooLarge):
		return k.uncheckable(file, fmt.Sprintf("has more than %d bytes", maxImporter))
	case err != nil:
		return nil // the CLI cannot read it either
	}
	targets, err := importTargets(string(text))
	k.bytes += len(text)
	k.targets += len(targets)
	switch {
	case err != nil:
		return k.uncheckable(file, err.Error())
	case k.targets > maxTargets:
		return k.uncheckable(file, "has too many imports")
	}
	next := reading{Read: r.Read, by: k.name(file), depth: r.depth + 1}
	for _, target := range targets {
		for _, dir := range slices.Compact([]string{filepath.Dir(file), filepath.Dir(physical)}) {
			imported := filepath.Clean(target)
			if !filepath.IsAbs(target) {
				imported = filepath.Join(dir, target)
			}
			if err := k.file(imported, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// uncheckable refuses a file that exceeds a limit, except in a trusted workspace.
func (k *check) uncheckable(file, why string) error {
	if k.trusted {
		return nil
	}
	return agent.Usagef("%s %s and cannot be checked; shorten it or use --trust-workspace", k.name(file), why)
}

// readImporter reads a regular file whose path has no links.
func readImporter(file string) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readFile(root, filepath.Base(file), maxImporter)
}

var (
	errLongImport = fmt.Errorf("has an import of more than %d bytes", maxPath)
	errNotText    = errors.New("has an import that is not UTF-8")
)

// importTargets returns the text after each "@" up to each possible end of a path,
// with and without what may follow one. It takes linear time and returns at most the
// maxTargets+1 that an error needs.
func importTargets(text string) (targets []string, err error) {
	for text != "" && len(targets) <= maxTargets {
		end := strings.IndexAny(text, " \t\r\n")
		if end < 0 {
			end = len(text)
		}
		for end > 0 && end < len(text) && text[end] == ' ' && text[end-1] == '\\' { // an escaped space
			next := strings.IndexAny(text[end+1:], " \t\r\n")
			if next < 0 {
				next = len(text) - end - 1
			}
			end += 1 + next
		}
		word := text[:end]
		text = text[min(end+1, len(text)):]
		if len(word) > maxPath {
			if isImport(word) {
				return nil, errLongImport
			}
			continue
		}
		for len(targets) <= maxTargets {
			_, rest, found := strings.Cut(word, "@")
			if !found {
				break
			}
			word = rest
			if !utf8.ValidString(word) { // which CLIs replace, each in its way
				return nil, errNotText
			}
			targets = appendTargets(targets, word)
		}
	}
	return targets, nil
}

// isImport reports whether a CLI may read a long word as an import.
func isImport(word string) bool {
	return strings.HasPrefix(word, "@") || strings.ContainsFunc(word, func(r rune) bool { return r == '\\' || unicode.IsSpace(r) })
}

// appendTargets appends the possible meanings of word, which follows "@".
func appendTargets(targets []string, word string) []string {
	add := func(target string) {
		if target != "" && !strings.ContainsRune(target, 0) && !slices.Contains(targets[max(len(targets)-8, 0):], target) {
			targets = append(targets, target)
		}
	}
	both := func(target string) {
		add(target)
		add(strings.TrimRight(target, ".,;:!?)]}>'\"`*_"))
		file, _, _ := strings.Cut(target, "#")
		add(file)
	}
	both(word)
	if end := strings.IndexFunc(word, unicode.IsSpace); end >= 0 {
		both(word[:end])
		both(strings.ReplaceAll(word, `\ `, " "))
	}
	return targets
}

// Names returns patterns of path.Match for the entries that CheckReads needs in the
// folders below a workdir.
func Names(reads []Read) []string {
	names := []string{".git"}
	for _, r := range slices.Concat(everyCLI, reads) {
		first, _, _ := strings.Cut(inEach(r.Name), "/")
		names = append(names, first)
	}
	return names
}

// inEach returns a pattern without leading "**", for use in each folder.
func inEach(name string) string {
	for strings.HasPrefix(name, "**/") {
		name = name[len("**/"):]
	}
	return name
}

// below checks the folders below workdir for files of reads, and of repositories. It
// does not follow links: a folder inside is checked under its real name, and CLIs read
// nothing in one outside.
func (k *check) below(workdir string, down []Read) (complete bool, err error) {
	s, err := tree.SurveyOf(k.ctx, Names(down), workdir)
	if err != nil {
		return false, err
	}
	for _, folder := range s.Folders(workdir) {
		if folder.Path == workdir {
			continue
		}
		if err := k.over(); err != nil {
			return false, err
		}
		for _, entry := range folder.Entries {
			for _, r := range down {
				r.Name = inEach(r.Name)
				if err := k.found(folder.Path, entry, r); err != nil {
					return false, err
				}
			}
			if entry.Name == ".git" {
				if err := k.git(folder.Path); err != nil {
					return false, err
				}
			}
		}
	}
	return len(s.Left(workdir)) == 0, nil
}

// found checks the files of r in dir if entry is its first element.
func (k *check) found(dir string, entry tree.File, r Read) error {
	first, rest, _ := strings.Cut(r.Name, "/")
	if isPattern(first) {
		if ok, _ := path.Match(first, entry.Name); !ok {
			return nil
		}
		first = entry.Name
	}
	switch {
	case !strings.EqualFold(first, entry.Name): // some file systems ignore case
		return nil
	case rest != "":
		return k.enter(filepath.Join(dir, first), strings.Split(rest, "/"), r, 0)
	case entry.Type.IsRegular() && !r.Imports:
		return nil
	}
	return k.file(filepath.Join(dir, first), reading{Read: r})
}
