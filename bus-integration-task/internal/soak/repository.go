package soak

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Commit is one of a primary repository.
type Commit struct {
	Hash    string
	Parents []string
	Subject string
	Files   []string // that it changes
}

// ReadCommits returns the commits of the branch that a repository is on, the latest first.
func ReadCommits(ctx context.Context, dir string) ([]Commit, error) {
	text, err := git(ctx, dir, "log", "--format=%x00%H%n%P%n%s", "--name-only")
	if err != nil {
		return nil, err
	}
	var commits []Commit
	for _, record := range strings.Split(text, "\x00")[1:] {
		lines := strings.Split(strings.TrimRight(record, "\n"), "\n")
		c := Commit{Hash: lines[0], Parents: strings.Fields(lines[1]), Subject: lines[2]}
		for _, name := range lines[3:] {
			if name != "" {
				c.Files = append(c.Files, name)
			}
		}
		commits = append(commits, c)
	}
	return commits, nil
}

// SubjectOf is how the commits of a task are called.
func SubjectOf(ref string) string { return "task " + ref }

// FileOf is the file that a task adds.
func FileOf(ref string) string {
	return "tasks/" + strings.NewReplacer("#", "-", ".", "-").Replace(ref)
}

// CheckCommits compares the commits of the repository of some tasks, of which only the
// oldest is of no task, with the log.
func CheckCommits(log []Entry, mine func(ref string) bool, commits []Commit) (found []string) {
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	landed := map[string]int{} // commits of a task
	at := map[string]string{}  // task of a commit
	for i, c := range commits {
		if i == len(commits)-1 {
			break
		}
		ref := strings.TrimPrefix(c.Subject, SubjectOf(""))
		landed[ref]++
		at[c.Hash] = ref
		if len(c.Parents) != 1 || c.Parents[0] != commits[i+1].Hash {
			report("commit %s: its parents are %q, not %s alone", c.Hash, c.Parents, commits[i+1].Hash)
		}
		if len(c.Files) != 1 || c.Files[0] != FileOf(ref) {
			report("commit %s of task %s: it changes %q", c.Hash, ref, c.Files)
		}
	}
	for _, e := range log {
		if e.Name != "bus.task.done" || !mine(e.WorkRef) {
			continue
		}
		switch {
		case e.Commit == "":
			report("task %s: %s has no commit", e.WorkRef, e.ID)
		case at[e.Commit] == "":
			report("task %s: commit %s of %s is lost", e.WorkRef, e.Commit, e.ID)
		case at[e.Commit] != e.WorkRef:
			report("task %s: commit %s of %s is of task %s", e.WorkRef, e.Commit, e.ID, at[e.Commit])
		}
		landed[e.WorkRef]--
	}
	for ref, more := range landed {
		if more != 0 {
			report("task %s: %+d commits more than ends as done", ref, more)
		}
	}
	return found
}

// Stale lists what should not be in a repository after its tasks have ended: worktrees,
// locks and journals of the worker, and changes.
func Stale(ctx context.Context, dir string) (found []string) {
	files, err := Files(filepath.Join(dir, ".git"), func(name string) bool {
		first, _, _ := strings.Cut(name, "/")
		return first == "worktrees" || strings.HasSuffix(name, ".lock") && !strings.HasPrefix(name, "bus-task") || strings.HasSuffix(name, ".json") ||
			strings.Contains(name, "tmp_obj")
	})
	if err != nil {
		return []string{err.Error()}
	}
	found = files
	changes, err := git(ctx, dir, "status", "--porcelain")
	if err != nil || changes != "" {
		found = append(found, fmt.Sprintf("%s: changes %q, %v", dir, changes, err))
	}
	if _, err := git(ctx, dir, "fsck", "--connectivity-only", "--no-dangling"); err != nil {
		found = append(found, fmt.Sprintf("%s: %v", dir, err))
	}
	return found
}

// Files lists the files and the empty folders below dir that are selected by their path
// below it.
func Files(dir string, selected func(name string) bool) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		if e.IsDir() {
			if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
				return err
			}
		}
		if selected(name) {
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// git runs git in a repository that the soak has made.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=soak", "GIT_AUTHOR_EMAIL=soak@example.invalid", "GIT_COMMITTER_NAME=soak", "GIT_COMMITTER_EMAIL=soak@example.invalid",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %q: %w: %s", args, err, out)
	}
	return string(out), nil
}
