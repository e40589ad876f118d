package worktree

import (
	"os"

	"github.com/busdk/bus-integration-task/internal/unix"
)

// checkOwn refuses a folder that another user could change: git would read what that user
// puts there.
func checkOwn(what, folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return problem(ErrGit, "%s: %w", what, err)
	}
	if !unix.IsOwn(info) {
		return problem(ErrUnsupported, "%s %s: it belongs to another user; choose a folder of yours", what, folder)
	}
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return problem(ErrUnsupported, "%s %s: other users can write to it; run chmod go-w on it", what, folder)
	}
	return nil
}
