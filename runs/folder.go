package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
)

// writable returns the folders that the agent of a run may write to.
func writable(run *agent.Recordable) []string {
	return append([]string{run.Start.Workdir, run.Root}, run.Request.AddDirs...)
}

// makeRoot makes and opens the folder of the records. It follows links in the path,
// except in folders that an agent may write to: an earlier agent can have made those.
func (s *Records) makeRoot(writable []string) (*statefile.Dir, error) {
	if !filepath.IsAbs(s.Root) {
		return nil, errors.New("Records.Root is not an absolute path")
	}
	var inside []string
	for _, dir := range writable {
		if real, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(real) {
			inside = append(inside, real)
		}
	}
	real, outer, err := resolve(filepath.Clean(s.Root), inside)
	if err != nil {
		return nil, err
	}
	if outer == "" {
		return statefile.MakeDir(real)
	}
	root, err := statefile.OpenDir(outer)
	below := strings.Trim(strings.TrimPrefix(real, outer), "/")
	if err != nil || below == "" {
		return root, err
	}
	for name := range strings.SplitSeq(below, "/") {
		above := root
		root, err = above.MakeDir(name)
		above.Close()
		if err != nil {
			return nil, err
		}
	}
	return root, nil
}

// maxLinks bounds the links in the path of the records.
const maxLinks = 40

// resolve follows the links of an absolute path, but none in the folders inside. It
// returns the outermost of these that contains the path. Missing elements are kept.
func resolve(path string, inside []string) (real, outer string, err error) {
	real = "/"
	links := 0
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		outer = outermost(real, inside)
		next := filepath.Join(real, name)
		stat, err := os.Lstat(next)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		if err != nil || stat.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		if outer != "" {
			return "", "", fmt.Errorf("%s is a symbolic link where an agent can write; remove it, or name the folder it leads to", next)
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", "", errors.Join(err, fmt.Errorf("%s: too many links", path))
		}
		if filepath.IsAbs(to) {
			real = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return real, outermost(real, inside), nil
}

// outermost returns the shortest of the folders that contain path or are path, "" for
// none.
func outermost(path string, folders []string) (outer string) {
	for _, dir := range folders {
		in := path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
		if in && (outer == "" || len(dir) < len(outer)) {
			outer = dir
		}
	}
	return outer
}

// moved returns an error if a held folder was moved or replaced, so that the files of
// the record are not at their path.
func (r *record) moved() error {
	for _, f := range []struct {
		held *statefile.Dir
		path string
	}{{r.taskFolder, r.task}, {r.folder, r.dir}} {
		if !f.held.Held(f.path) {
			return fmt.Errorf("its folder %s was moved or replaced during the run; nothing was written to the new one", f.path)
		}
	}
	return nil
}
