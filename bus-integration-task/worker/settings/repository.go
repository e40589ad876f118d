package settings

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/task"
)

// Repository returns the folder of a recipient's repository, absolute and without links:
// the workspace root for the workspace recipient, otherwise the folder of that name in
// it. A recipient whose folder is missing, is not a directory or leads out of the root is
// an agent.ErrUsage error.
func (s *Settings) Repository(recipient string) (string, error) {
	name, err := task.ParseRecipient(recipient)
	if err != nil {
		return "", agent.Usagef("%w", err)
	}
	root, err := filepath.EvalSymlinks(s.WorkspaceRoot)
	if err != nil {
		return "", agent.Usagef("--workspace-root: %v", err)
	}
	if name == s.WorkspaceRecipient {
		return root, isFolder(root)
	}
	inside, err := os.OpenRoot(root)
	if err != nil {
		return "", agent.Usagef("--workspace-root: %v", err)
	}
	defer inside.Close()
	// A Root follows links only while they stay inside.
	info, err := inside.Stat(name)
	if err != nil {
		return "", agent.Usagef("recipient %s: no repository in the workspace: %v", name, err)
	}
	folder, err := filepath.EvalSymlinks(filepath.Join(root, name))
	switch {
	case err != nil:
		return "", agent.Usagef("recipient %s: %v", name, err)
	case !info.IsDir():
		return "", agent.Usagef("recipient %s: %s is not a directory", name, quote(folder))
	case folder == root:
		return "", agent.Usagef("recipient %s: it leads to the workspace root; use --workspace-recipient for that", name)
	}
	// The name may have changed since; what it leads to now must be inside too.
	if rel, err := filepath.Rel(root, folder); err != nil || !filepath.IsLocal(rel) {
		return "", agent.Usagef("recipient %s: it leads out of the workspace", name)
	}
	return folder, nil
}

func isFolder(name string) error {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return agent.Usagef("--workspace-root: %s is not a directory", quote(name))
	}
	return nil
}

// HostPath returns what the container host calls an absolute path: below the workspace
// root, the same below WorkspaceHostRoot if that is set; otherwise the path itself.
func (s *Settings) HostPath(path string) string {
	if s.WorkspaceHostRoot == "" {
		return path
	}
	roots := []string{s.WorkspaceRoot}
	if real, err := filepath.EvalSymlinks(s.WorkspaceRoot); err == nil { // Repository returns paths without links
		roots = append(roots, real)
	}
	for _, root := range roots {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(s.WorkspaceHostRoot, rel)
		}
	}
	return path
}

var notSafe = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// StateDir returns the folder for the private state of a task's runtime below
// CodexStateRoot, or "" if that is not set. Different tasks have different folders. It
// makes nothing; see backend.Attempt.StateDir, which copies the login there.
func (s *Settings) StateDir(workRef string) string {
	if s.CodexStateRoot == "" {
		return ""
	}
	name := notSafe.ReplaceAllString(workRef, "-")
	sum := sha256.Sum256([]byte(workRef)) // references that differ in other characters
	return filepath.Join(s.CodexStateRoot, fmt.Sprintf("%s-%x", name[:min(len(name), 64)], sum[:8]))
}
