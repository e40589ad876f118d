package instructions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
)

// makeTree makes files below dir. Content that begins with "->" makes a link to the rest,
// "|" a FIFO; a name that ends in "/" is a folder.
func makeTree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		target, isLink := strings.CutPrefix(content, "->")
		switch {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(file, 0o755))
		case isLink:
			must(t, os.Symlink(target, file))
		case content == "|":
			must(t, syscall.Mkfifo(file, 0o644))
		default:
			must(t, os.WriteFile(file, []byte(content), 0o644))
		}
	}
}

// Refuse a repository in which a file that the CLI reads by itself leads elsewhere.
func ExampleChain_CheckReads() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "RULES.md")); err != nil {
		panic(err)
	}
	chain, err := instructions.Discover(dir)
	if err != nil {
		panic(err)
	}
	_, err = chain.CheckReads(context.Background(), instructions.Reads(instructions.Upward, "RULES.md"), false)
	fmt.Println(errors.Is(err, agent.ErrUsage))
	// Output: true
}

func TestHostileReads(t *testing.T) {
	t.Parallel()
	reads := append(instructions.Reads(instructions.Upward, "UP.md", "skills/*/SKILL.md", "commands/**/*.toml"),
		instructions.Read{Name: "CTX.md", Where: instructions.Everywhere, Imports: true},
		instructions.Read{Name: "DOWN.md", Where: instructions.Downward},
		instructions.Read{Name: "rules/**/*.mdc", Where: instructions.Everywhere},
		instructions.Read{Name: "*.rul", Where: instructions.Downward},
		instructions.Read{Name: `\*.md`, Where: instructions.Everywhere},
		instructions.Read{Name: "**/D/*.d", Where: instructions.Downward},
		instructions.Read{Name: "TRUST.md", Trusted: true})
	const leads, waits = "would read it by itself", "could block"
	for name, tt := range map[string]struct {
		files   map[string]string
		want    string // of the error without trust
		trusted string // and with it
		file    string // that the error names
	}{
		"nothing":                 {},
		"regular files":           {files: map[string]string{"CTX.md": "x", "sub/UP.md": "x", "skills/a/SKILL.md": "x"}},
		"a link inside":           {files: map[string]string{"CTX.md": "->sub/x", "sub/x": "x"}},
		"a link that is dangling": {files: map[string]string{"CTX.md": "->nowhere"}},
		"a link to itself":        {files: map[string]string{"CTX.md": "->CTX.md"}},
		"a folder":                {files: map[string]string{"CTX.md/": "", ".gitignore/": "", "sub/below/CTX.md/": ""}},
		"a link out":              {files: map[string]string{"UP.md": "->../outside/x"}, want: leads, file: "UP.md"},
		"a link out in the workdir": {
			files: map[string]string{"sub/UP.md": "->../../outside/x"}, want: leads, file: "sub/UP.md"},
		"a link out to nothing":      {files: map[string]string{"CTX.md": "->../outside/later"}, want: leads, file: "CTX.md"},
		"a link to a process":        {files: map[string]string{"CTX.md": "->/proc/self/environ"}, want: leads, file: "CTX.md"},
		"a link to a descriptor":     {files: map[string]string{"CTX.md": "->/proc/self/fd/987"}, want: leads, file: "CTX.md"},
		"a link by another link":     {files: map[string]string{"CTX.md": "->a", "a": "->b/x", "b": "->../outside"}, want: leads, file: "CTX.md"},
		"a link to a device":         {files: map[string]string{"CTX.md": "->/dev/zero"}, want: waits, trusted: waits, file: "CTX.md"},
		"a FIFO":                     {files: map[string]string{"sub/CTX.md": "|"}, want: waits, trusted: waits, file: "sub/CTX.md"},
		"a linked FIFO":              {files: map[string]string{"CTX.md": "->f", "f": "|"}, want: waits, trusted: waits, file: "CTX.md"},
		"what is read with trust":    {files: map[string]string{"TRUST.md": "|"}, trusted: waits, file: "TRUST.md"},
		"a FIFO in its folder":       {files: map[string]string{"TRUST.md": "->../outside/x"}},
		"a skill":                    {files: map[string]string{"skills/a/SKILL.md": "->../../../outside/x"}, want: leads, file: "skills/a/SKILL.md"},
		"what a skill has":           {files: map[string]string{"skills/a/bin/python": "->/usr/bin/env"}},
		"a linked skill":             {files: map[string]string{"skills/a": "->../../outside"}, want: leads, file: "skills/a"},
		"a linked skill without one": {files: map[string]string{"skills/a": "->../../empty"}},
		"linked skills":              {files: map[string]string{"skills": "->../outside"}, want: leads, file: "skills"},
		"linked commands":            {files: map[string]string{"commands": "->/"}, want: leads, file: "commands"},
		"linked skills inside":       {files: map[string]string{"skills": "->other", "other/a/SKILL.md": "->../../../outside/x"}, want: leads, file: "skills/a/SKILL.md"},
		"a deep command":             {files: map[string]string{"commands/a/b/c.toml": "|"}, want: waits, trusted: waits, file: "commands/a/b/c.toml"},
		"a loop of folders":          {files: map[string]string{"commands/a/b": "->..", "commands/a/c.toml": "x"}},
		"a FIFO for a folder":        {files: map[string]string{"commands": "|", "skills": "|"}},
		"an import":                  {files: map[string]string{"CTX.md": "see @./a\n", "a": "->/proc/self/environ"}, want: leads, file: "a, which CTX.md imports,"},
		"an import at the end":       {files: map[string]string{"CTX.md": "@a.", "a": "|"}, want: waits, trusted: waits, file: "a, which CTX.md imports,"},
		"an import of an import":     {files: map[string]string{"CTX.md": "@sub/a", "sub/a": "@../b#part", "b": "|"}, want: waits, trusted: waits, file: "b, which sub/a imports,"},
		"an import in a circle":      {files: map[string]string{"CTX.md": "@a", "a": "@CTX.md @a"}},
		"an absolute import":         {files: map[string]string{"CTX.md": "@/proc/self/environ"}, want: leads, file: "/proc/self/environ, which CTX.md imports,"},
		"an import above":            {files: map[string]string{"CTX.md": "@../outside/x"}, want: leads, file: "which CTX.md imports,"},
		"an import of a linked file": {files: map[string]string{"CTX.md": "->other/y", "other/y": "@z", "other/z": "|"}, want: waits, trusted: waits, file: "other/z"},
		"what looks like an import":  {files: map[string]string{"CTX.md": "me@example.com @types/node @ @/nowhere @\x00 @@"}},
		"an import with a form feed": {files: map[string]string{"CTX.md": "@./a\fb c", "a\fb": "|"}, want: waits, trusted: waits, file: "which CTX.md imports,"},
		"an import with a space":     {files: map[string]string{"CTX.md": `@a\ b c`, "a b": "|"}, want: waits, trusted: waits, file: "a b, which CTX.md imports,"},
		"an import up to a space":    {files: map[string]string{"CTX.md": "@a\u00a0b", "a": "|"}, want: waits, trusted: waits, file: "a, which CTX.md imports,"},
		"an import of other text":    {files: map[string]string{"CTX.md": "@a\xffb", "a\ufffdb": "|"}, want: "cannot be checked", file: "CTX.md"},
		"a long import":              {files: map[string]string{"CTX.md": "@" + strings.Repeat("./", 4000) + "a", "a": "|"}, want: "cannot be checked", file: "CTX.md"},
		"a long word":                {files: map[string]string{"CTX.md": strings.Repeat("x@y", 4000)}},
		"more imports than checked":  {files: map[string]string{"CTX.md": strings.Repeat("@a @b @c @d @e @f @g @h @i @j ", 1<<13)}, want: "cannot be checked", file: "CTX.md"},
		"an ignore file of ripgrep":  {files: map[string]string{"sub/a/.ignore": "|"}, want: waits, trusted: waits, file: "sub/a/.ignore"},
		"no imports there":           {files: map[string]string{"UP.md": "@/etc/passwd"}},
		"too long for imports":       {files: map[string]string{"CTX.md": strings.Repeat("x", 1<<20+1)}, want: "cannot be checked", file: "CTX.md"},
		"below":                      {files: map[string]string{"sub/a/b/DOWN.md": "->/etc/passwd"}, want: leads, file: "sub/a/b/DOWN.md"},
		"below, what is not read":    {files: map[string]string{"sub/a/UP.md": "->/etc/passwd", "sub/DOWN.md": "->/etc/passwd", "DOWN.md": "->/etc/passwd"}},
		"a pattern below":            {files: map[string]string{"sub/a/x.rul": "|"}, want: waits, trusted: waits, file: "sub/a/x.rul"},
		"a star":                     {files: map[string]string{"sub/a/*.md": "|", "sub/a/x.md": "|"}, want: waits, trusted: waits, file: "sub/a/*.md"},
		"any folder below":           {files: map[string]string{"sub/a/b/D/x.d": "->/etc/passwd"}, want: leads, file: "sub/a/b/D/x.d"},
		"next to the workdir":        {files: map[string]string{"other/CTX.md": "|"}},
		"a rule below":               {files: map[string]string{"sub/a/rules/b/r.mdc": "|"}, want: waits, trusted: waits, file: "sub/a/rules/b/r.mdc"},
		"a linked folder below":      {files: map[string]string{"sub/a": "->/"}},
		"an import below":            {files: map[string]string{"sub/a/CTX.md": "@x", "sub/a/x": "->/etc/passwd"}, want: leads, file: "sub/a/x, which sub/a/CTX.md imports,"},
		"an ignore file":             {files: map[string]string{".gitignore": "|"}, want: waits, trusted: waits, file: ".gitignore"},
		"an ignore file below":       {files: map[string]string{"sub/a/.gitignore": "->/etc/passwd"}, want: leads, file: "sub/a/.gitignore"},
		"a linked .git below":        {files: map[string]string{"sub/a/.git": "->../../../outside"}, want: leads, file: "sub/a/.git"},
		"a FIFO .git below":          {files: map[string]string{"sub/a/.git": "|"}, want: waits, trusted: waits, file: "sub/a/.git"},
		"a HEAD below":               {files: map[string]string{"sub/a/.git/HEAD": "|"}, want: waits, trusted: waits, file: "sub/a/.git/HEAD"},
		"a commondir":                {files: map[string]string{".git/commondir": "|"}, want: waits, trusted: waits, file: ".git/commondir"},
		"a branch":                   {files: map[string]string{".git/refs/heads/a/b": "->/etc/passwd"}, want: leads, file: ".git/refs/heads/a/b"},
		"a shared file of git's":     {files: map[string]string{".git/packed-refs": "->../../outside/x", ".git/config": "->../../outside/x"}},
		"a hook that is off":         {files: map[string]string{".git/hooks/pre-commit": "->/dev/null"}},
		"a FIFO in a folder":         {files: map[string]string{"sub/f": "|", "other/f": "|"}},
		"a worktree":                 {files: map[string]string{"sub/a/.git": "gitdir: ../../../outside/tree"}},
		"a hostile worktree":         {files: map[string]string{"sub/a/.git": "gitdir: ../g\n", "sub/g/HEAD": "->/etc/passwd"}, want: leads, file: "sub/g/HEAD"},
		"a FIFO for a worktree":      {files: map[string]string{"sub/a/.git": "gitdir: f\n", "sub/a/f": "|"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := tempDir(t)
			makeTree(t, top, map[string]string{"repo/.git/refs/": "", "repo/sub/": "", "outside/x": "x", "outside/SKILL.md": "x", "outside/a/SKILL.md": "x", "outside/tree/HEAD": "x", "empty/": ""})
			repo := filepath.Join(top, "repo")
			if tt.files[".git/HEAD"] == "" {
				makeTree(t, repo, map[string]string{".git/HEAD": "ref: refs/heads/main\n"})
			}
			makeTree(t, repo, tt.files)
			chain, err := instructions.Discover(filepath.Join(repo, "sub"))
			must(t, err)
			for trusted, want := range map[bool]string{false: tt.want, true: tt.trusted} {
				complete, err := chain.CheckReads(t.Context(), reads, trusted)
				if want == "" && (err != nil || !complete) {
					t.Errorf("trusted %t: CheckReads = %t, %v", trusted, complete, err)
				}
				if want != "" && (!errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), tt.file)) {
					t.Errorf("trusted %t: CheckReads = %v, want %q of %q", trusted, err, want, tt.file)
				}
			}
		})
	}
}

// Outside a repository, CLIs search up to anything named .git.
func TestCheckReadsUpToAFalseRoot(t *testing.T) {
	t.Parallel()
	top := tempDir(t)
	makeTree(t, top, map[string]string{"a/.git/": "", "a/b/c/": "", "a/CTX.md": "->/etc/passwd", "CTX.md": "|"})
	chain, err := instructions.Discover(filepath.Join(top, "a/b/c"))
	must(t, err)
	if _, err := chain.CheckReads(t.Context(), instructions.Reads(instructions.Upward, "CTX.md"), false); err == nil || !strings.Contains(err.Error(), "/etc/passwd") {
		t.Errorf("CheckReads = %v", err)
	}
	must(t, os.Remove(filepath.Join(top, "a/CTX.md")))
	if _, err := chain.CheckReads(t.Context(), instructions.Reads(instructions.Upward, "CTX.md"), false); err != nil {
		t.Errorf("CheckReads = %v, but nothing looks that far up", err)
	}
}

func TestCheckReadsRefusesABadPattern(t *testing.T) {
	t.Parallel()
	chain, err := instructions.Discover(t.TempDir())
	must(t, err)
	for _, name := range []string{"", "/a", "a/", "a//b", "../a", "a/./b", "[", "a/[/b", "a/**"} {
		if _, err := chain.CheckReads(t.Context(), instructions.Reads(instructions.Upward, name), false); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func TestCheckReadsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	chain, err := instructions.Discover(t.TempDir())
	must(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := chain.CheckReads(ctx, nil, false); !errors.Is(err, gone) {
		t.Errorf("CheckReads = %v", err)
	}
}

func BenchmarkCheckReads(b *testing.B) {
	dir := tempDir(b)
	for i := range 100 {
		sub := filepath.Join(dir, strconv.Itoa(i%10), strconv.Itoa(i))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		for n := range 10 {
			if err := os.WriteFile(filepath.Join(sub, strconv.Itoa(n)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	chain, err := instructions.Discover(dir)
	if err != nil {
		b.Fatal(err)
	}
	reads := append(instructions.Reads(instructions.Everywhere, "A.md", "B.md"), instructions.Reads(instructions.Upward, "s/*/S.md", "c/**/*.toml")...)
	for b.Loop() {
		if _, err := chain.CheckReads(b.Context(), reads, false); err != nil {
			b.Fatal(err)
		}
	}
}

// The time to check a text full of possible imports grows in proportion to its length.
func TestImportsWithoutAnEnd(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	makeTree(t, dir, map[string]string{
		".git/HEAD": "x", "CTX.md": strings.Repeat("@", 1<<20),
		"a/CTX.md": strings.Repeat("x@", 1<<19), "b/CTX.md": strings.Repeat("@"+strings.Repeat("@", 4000)+" ", 250),
	})
	chain, err := instructions.Discover(dir)
	must(t, err)
	for _, trusted := range []bool{false, true} {
		if _, err := chain.CheckReads(t.Context(), []instructions.Read{{Name: "CTX.md", Where: instructions.Everywhere, Imports: true}}, trusted); trusted && err != nil {
			t.Errorf("trusted: %v", err)
		}
	}
}
