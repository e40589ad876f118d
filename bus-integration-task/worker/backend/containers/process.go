package containers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-integration-task/internal/unix"
)

// A Process runs commands as processes of this machine, for tests. It ignores the image.
// A command gets a clean environment, a private HOME and TMPDIR, and the mounts at their
// own places only: Source and Target must be the same. On Linux, unshare of util-linux
// makes read-only mounts read-only and ends every process of a run; without it, or where
// the system allows no user namespaces, they are writable, and processes that leave
// their group survive.
type Process struct {
	// Path is where commands are found; "" is PATH of the integration.
	Path string
}

// Name returns "process".
func (p *Process) Name() string { return "process" }

// Run runs a command.
func (p *Process) Run(ctx context.Context, r RunRequest) (Exit, error) {
	if err := checkPlaces(&r); err != nil {
		return Exit{}, err
	}
	temp, err := os.MkdirTemp("", "bus-run-")
	if err != nil {
		return Exit{}, err
	}
	defer os.RemoveAll(temp)
	path := cmp.Or(p.Path, os.Getenv("PATH"))
	program, err := find(r.command()[0], path)
	if err != nil {
		return Exit{}, err
	}
	dir := cmp.Or(r.Workdir, temp)
	args := append([]string{program}, r.command()[1:]...)
	if unshare := isolation(ctx); unshare != "" {
		args = isolated(unshare, dir, r.Mounts, args)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + path, "HOME=" + temp, "TMPDIR=" + temp, "LANG=C.UTF-8"}
	cmd.Env = append(cmd.Env, r.passed()...)
	return run(ctx, cmd, r.passed())
}

// checkPlaces returns what a process cannot have of a container.
func checkPlaces(r *RunRequest) error {
	if len(r.command()) == 0 {
		return agent.Usagef("the command is empty; name one, because no container engine is running that knows the command of an image")
	}
	inside := r.Workdir == ""
	for _, m := range r.Mounts {
		if m.Source != m.Target {
			return agent.Usagef("mount %q cannot be at %q; without a container engine it is at its own place only", m.Source, m.Target)
		}
		inside = inside || r.Workdir == m.Target || strings.HasPrefix(r.Workdir, strings.TrimSuffix(m.Target, "/")+"/")
	}
	if !inside {
		return agent.Usagef("workdir %q is in no mount", r.Workdir)
	}
	return nil
}

// find returns the absolute path of a program.
func find(name, path string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return "", agent.Usagef("command %q is neither a name nor an absolute path", name)
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("command %q: %w", name, exec.ErrNotFound)
}

// isolation returns the path of unshare if it works here; "" otherwise.
func isolation(ctx context.Context) string {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return ""
	}
	args := isolated(unshare, "/", nil, []string{"/bin/true"})
	if exec.CommandContext(ctx, args[0], args[1:]...).Run() != nil {
		return ""
	}
	return unshare
}

// isolate mounts, in new namespaces, the folders named after "ro" read-only, and
// those after "rw" over them, and then runs the command after "--". A remount must keep
// what the system has restricted, so it tries the usual restrictions.
const isolate = `set -e
dir=$1
shift
while [ "$1" != -- ]; do
	mount --bind "$2" "$2"
	mount -o "remount,bind,$1" "$2" 2>/dev/null ||
		mount -o "remount,bind,$1,nosuid,nodev" "$2" 2>/dev/null ||
		mount -o "remount,bind,$1,nosuid,nodev,noexec" "$2"
	shift 2
done
shift
cd "$dir"
exec "$@"
`

// isolated returns the command that runs args in dir with mounts in new
// namespaces.
func isolated(unshare, dir string, mounts []Mount, args []string) []string {
	all := []string{unshare, "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", isolate, "isolate", dir}
	for _, word := range []string{"ro", "rw"} { // what is writable can be inside what is not
		for _, m := range mounts {
			if m.ReadOnly == (word == "ro") {
				all = append(all, word, m.Source)
			}
		}
	}
	return append(append(all, "--"), args...)
}

// killGroup kills the processes that are left in the group of cmd.
func killGroup(cmd *exec.Cmd) {
	if err := unix.SignalGroup(cmd, syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = cmd.Process.Kill() // it has ended, or belongs to another user
	}
}
