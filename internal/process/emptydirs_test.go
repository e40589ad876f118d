package process

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEmptyDirsAreRemovedOnlyIfNew(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id")
	s := agent(t,
		step{Do: "mkdir", Text: ".new"},
		step{Do: "mkdir", Text: ".old"},
		step{Do: "mkdir", Text: ".full/inside"},
		step{Do: "mkdir", Text: ".unnamed"},
		step{Do: "report", Text: ".file"},
		step{Do: "link", Text: ".link"},
		step{Do: "report", Text: file})
	s.Env = append(s.Env, "TMPDIR="+t.TempDir())
	s.EmptyDirs = []string{".new", ".old", ".full", ".file", ".link", ".never"}
	if err := os.Mkdir(filepath.Join(s.Dir, ".old"), 0o700); err != nil {
		t.Fatal(err)
	}
	if exit, _, stderr := result(t, s); exit != (Exit{}) {
		t.Fatal(exit, stderr)
	}
	expectEntries(t, s.Dir, ".file", ".full", ".link", ".old", ".unnamed")
	if _, err := os.Stat(filepath.Join(s.Dir, ".link")); err != nil {
		t.Error("what the link leads to is gone:", err)
	}
}

func TestEmptyDirsAreRemovedByTheLastRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "id")
	start := func(steps ...step) *Process {
		s := agent(t, steps...)
		s.Dir, s.EmptyDirs = dir, []string{".new"}
		p, err := Start(soon(t), s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := start(step{Do: "mkdir", Text: ".new"}, step{Do: "report", Text: file}, step{Do: "hang"})
	reported(t, file)
	second := start(step{Do: "hang"})
	for _, end := range []struct {
		p    *Process
		want []string
	}{{first, []string{".new"}}, {second, nil}} {
		end.p.Stop()
		if _, err := end.p.Wait(); err != nil {
			t.Fatal(err)
		}
		expectEntries(t, dir, end.want...)
	}
}
