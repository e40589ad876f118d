package worktree_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/busdk/bus-integration-task/worktree"
)

// A worker isolates a task, commits what it has done, and promotes it.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir, _ = filepath.EvalSymlinks(dir)
	primary := filepath.Join(dir, "workspace", "bus-dev")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", primary},
		{"-C", primary, "-c", "user.name=u", "-c", "user.email=u@example.invalid", "commit", "-q", "--allow-empty", "-m", "begin"},
	} {
		if err := exec.Command("git", args...).Run(); err != nil {
			log.Fatal(err)
		}
	}

	ctx := context.Background()
	repository, err := worktree.Open(ctx, primary, worktree.Config{
		Workspace: filepath.Join(dir, "workspace"),
		State:     filepath.Join(dir, "state"),
	})
	if err != nil {
		log.Fatal(err)
	}
	w, err := repository.Add(ctx, worktree.Options{Root: filepath.Join(dir, "worktrees"), Ref: "busdk#81"})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()

	// The task.
	if err := os.WriteFile(filepath.Join(w.Path(), "README"), []byte("Hello\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	changes, err := w.Changes(ctx, 0)
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range changes.Files {
		fmt.Printf("%c %s\n", file.Status, file.Path)
	}
	commit, err := w.Commit(ctx, changes.Tree, "Add a README", worktree.Identity{Name: "bus-dev", Email: "bus-dev@localhost"})
	if err != nil {
		log.Fatal(err)
	}
	moved, err := repository.Promote(ctx, w.BaseBranch(), commit, func(context.Context, string) error {
		return nil // prove that the claim on the task still holds
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("promoted:", moved)
	if err := w.Remove(ctx, true); err != nil {
		log.Fatal(err)
	}
	// Output:
	// A README
	// promoted: true
}
