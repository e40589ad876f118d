package worktree

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
)

// tip returns the commit of a branch that is to be written or removed, "" for none. A
// symbolic reference is refused: git would write to the branch that it names.
func (p *private) tip(ctx context.Context, branch string) (string, error) {
	if isSymbolic(filepath.Join(p.repo.common, "refs", "heads", branch)) {
		return "", problem(ErrBranch, "branch %s: it is a symbolic reference to another branch; name that one, or remove the reference", branch)
	}
	return p.resolve(ctx, "refs/heads/"+branch)
}

// isSymbolic reports whether the file of a reference can lead to another one.
func isSymbolic(name string) bool {
	info, err := os.Lstat(name)
	if err != nil || info.IsDir() {
		return false
	}
	data, err := readData(name) // it follows no link
	return err != nil || bytes.HasPrefix(data, []byte("ref:"))
}

// setBranch makes commit the tip of a branch that is at old, whatever its tip is if old is
// "".
func (p *private) setBranch(ctx context.Context, c call, why, branch, commit, old string) error {
	args := []string{"update-ref", "--no-deref", "-m", "bus-integration-task: " + why, "refs/heads/" + branch, commit}
	if old != "" {
		args = append(args, old)
	}
	_, err := p.git(ctx, c, args...)
	return err
}

// deleteBranch deletes a branch that is at old.
func (p *private) deleteBranch(ctx context.Context, branch, old string) error {
	_, err := p.git(ctx, call{}, "update-ref", "--no-deref", "-d", "refs/heads/"+branch, old)
	return err
}

// begun reports whether a branch was created for the task ref, by the log of the branch.
func (r *Repository) begun(branch, ref string) bool {
	data, err := readData(filepath.Join(r.common, "logs", "refs", "heads", branch))
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return err == nil && ref != "" && bytes.HasSuffix(first, []byte("\tbus-integration-task: begin "+oneLine(ref, 200)))
}
