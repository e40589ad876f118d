package process

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/unix"
)

// TempPrefix begins the names of the folders for temporary files that a run
// makes outside of its workdir.
const TempPrefix = "bus-agent-"

// ClaimName is the file in a folder of a run that names its owner.
const ClaimName = ".bus-agent-owner"

// A Claim records that this process uses a folder. It ends with the process.
type Claim struct {
	file *os.File
}

// ClaimFolder claims a folder that this process has just made: a file in it names
// the process, which holds a lock on the file. Programs that the process starts
// do not inherit the lock. The file goes with the folder. Without a claim a folder
// is never taken for stale.
func ClaimFolder(folder *os.Root) (*Claim, error) {
	f, err := folder.OpenFile(ClaimName, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = statefile.TryLock(f)
	if err == nil {
		_, err = f.WriteString(owner() + "\n")
	}
	if err != nil {
		f.Close()
		return nil, errors.Join(err, folder.Remove(ClaimName))
	}
	claims.Store(f, true)
	return &Claim{f}, nil
}

// claims are the files of the claims of this process.
var claims sync.Map

// Unfinished returns what this process has not yet ended or removed, for the message
// of a program that cannot wait for it: the PIDs of agents that are alive and the
// folders that it claims.
func Unfinished() (agents []int, folders []string) {
	for _, r := range runs.all() {
		if p, err := readProcess(r.pid); err == nil && !p.dead {
			agents = append(agents, r.pid)
		}
	}
	for file := range claims.Range {
		folders = append(folders, filepath.Dir(file.(*os.File).Name()))
	}
	slices.Sort(agents)
	slices.Sort(folders)
	return agents, folders
}

// MakeTempDir makes and claims a folder for the temporary files of a run in dir,
// readable by the user alone. Its name has the key and the first number that is free,
// so equal runs, one after another, have equal names; without a key it is random. On a
// file system without locks it is not claimed, and counts as in use for ever.
func MakeTempDir(dir, key string) (name string, claim *Claim, err error) {
	parent, err := os.OpenRoot(dir)
	if err != nil {
		return "", nil, err
	}
	defer parent.Close()
	first := uint64(0)
	if key == "" {
		first = uint64(rand.Uint32())
	} else {
		key += "-"
	}
	name, root, err := MakeFolder(parent, func(n uint64) string { return TempPrefix + key + strconv.FormatUint(first+n, 36) })
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	claim, _ = ClaimFolder(root)
	return filepath.Join(dir, name), claim, nil
}

// numbered is how many names MakeFolder tries before it uses a random number.
const numbered = 100

// MakeFolder makes a folder, readable by the user alone, and opens it. Its name is the
// first of name(1), name(2) and so on that does not exist: an existing folder
// is never used. If all are in use, the number is random.
func MakeFolder(parent *os.Root, name func(n uint64) string) (string, *os.Root, error) {
	for n := uint64(1); ; n++ {
		if n > numbered {
			n = uint64(rand.Uint32())
		}
		made := name(n)
		err := parent.Mkdir(made, 0o700)
		if errors.Is(err, fs.ErrExist) && n <= numbered {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		folder, err := parent.OpenRoot(made)
		if err == nil {
			if err = checkNew(folder); err == nil {
				return made, folder, nil
			}
			folder.Close()
		}
		return "", nil, errors.Join(err, parent.Remove(made))
	}
}

// checkNew returns an error unless a folder belongs to this user alone and is empty.
// Its name can be predicted, so another program could have taken its place.
func checkNew(folder *os.Root) error {
	info, err := folder.Stat(".")
	if err != nil {
		return err
	}
	f, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if names, _ := f.Readdirnames(1); len(names) > 0 || !isOurs(info) || info.Mode().Perm()&0o077 != 0 {
		return errors.New("another program has replaced a folder that was just made")
	}
	return nil
}

// Release ends the claim. A nil Claim has none.
func (c *Claim) Release() {
	if c != nil {
		claims.Delete(c.file)
		unlockFile(c.file)
	}
}

// StaleClaim reports whether a folder is stale: claimed by a process of this
// user, in this boot and PID namespace, that is dead. Then it returns the PID that
// the process had and holds the claim until release is called. A folder without a
// claim, or with one of which nothing is known here, is not stale; it may be
// in use by another machine that shares the file system.
func StaleClaim(folder *os.Root) (owner int, release func(), ok bool) {
	f, err := openClaim(folder)
	if err != nil {
		return 0, nil, false
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	o, parsed := parseOwner(strings.TrimSuffix(string(text), "\n"))
	if err != nil || !parsed || !o.dead() || statefile.TryLock(f) != nil {
		f.Close()
		return 0, nil, false
	}
	return o.pid, func() { unlockFile(f) }, true
}

var errNoClaim = errors.New("no claim of this user")

// openClaim opens the claim of a folder if it and the folder belong to this user.
func openClaim(folder *os.Root) (*os.File, error) {
	before, err := folder.Lstat(ClaimName)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() || !isOurs(before) {
		return nil, errNoClaim
	}
	if dir, err := folder.Stat("."); err != nil || !isOurs(dir) {
		return nil, errNoClaim
	}
	f, err := folder.OpenFile(ClaimName, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		f.Close()
		return nil, errNoClaim
	}
	return f, nil
}

func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*unix.SysStat)
	return ok && int(stat.Uid) == os.Geteuid()
}

// unlockFile releases a lock and closes the file. Closing alone is not enough: a
// process that is being started holds a copy of the descriptor for a moment.
func unlockFile(f *os.File) {
	_ = statefile.Unlock(f) // the kernel drops the lock in any case
	f.Close()
}
