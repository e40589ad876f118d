package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

// What is planted in a module does not run for a task that has a link to it.
func TestNothingPlantedInDependenciesRuns(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"", "dev"} {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, module)
			mark, program := filepath.Join(b.dir, "fired"), filepath.Join(b.dir, "program")
			b.write(b.dir, "program", "#!/bin/sh\n: >"+mark+"\n")
			other := filepath.Join(b.workspace, "other")
			b.git(b.workspace, "init", "-q", other)
			b.write(other, "file", "one\n")
			b.write(other, ".gitattributes", "file filter=x\n")
			b.git(other, "add", ".")
			b.git(other, "commit", "-qm", "other")
			if err := os.Chmod(program, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"core.fsmonitor", "filter.x.clean", "filter.x.smudge", "diff.external", "core.pager"} {
				b.git(other, "config", key, program)
			}
			b.write(b.workspace, ".gitmodules", "[submodule \"other\"]\n\tpath = other\n\turl = ext::"+program+"\n\tupdate = !"+program+"\n")
			fired := func() bool { is := exists(mark); os.Remove(mark); return is }
			if b.tryGit(other, "status"); !fired() {
				t.Fatal("plain git does not run it")
			}
			r := b.open()
			w := b.add(r, Options{})
			if len(w.Links()) != 1 {
				t.Fatalf("links %q", w.Links())
			}
			b.write(w.Path(), "README", "two\n")
			if changes, err := w.Changes(t.Context(), 1<<20); err != nil || changes.Total != 1 {
				t.Error(changes, err)
			}
			commit := b.commit(w)
			if _, err := r.Promote(t.Context(), "main", commit, nil); err != nil {
				t.Error(err)
			}
			if err := w.Remove(t.Context(), true); err != nil || b.read(other, "file") != "one\n" {
				t.Error(err)
			}
			if fired() {
				t.Error("it ran")
			}
		})
	}
}
