package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// claim claims a folder until this process ends.
func claim(s step) {
	root, err := os.OpenRoot(s.Text)
	check(err)
	_, err = ClaimFolder(root)
	check(err)
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func staleOwner(t *testing.T, root *os.Root) int {
	t.Helper()
	owner, release, ok := StaleClaim(root)
	if ok {
		if _, _, again := StaleClaim(root); again {
			t.Error("two have found it stale at once")
		}
		release()
	}
	return owner
}

func TestFolderIsStaleWhenItsOwnerIsDead(t *testing.T) {
	t.Parallel()
	dir, ids := t.TempDir(), t.TempDir()
	root := openRoot(t, dir)
	claiming := fake([]step{
		{Do: "claim", Text: dir},
		// What the owner starts does not hold on to the folder.
		{Do: "spawn", Child: &child{Session: true, Steps: []step{{Do: "report", Text: ids + "/child"}, {Do: "hang"}}}},
		{Do: "report", Text: ids + "/owner"}, {Do: "hang"},
	})
	if err := claiming.Start(); err != nil {
		t.Fatal(err)
	}
	heir := reported(t, ids+"/child")
	defer heir.kill()
	reported(t, ids+"/owner")
	if owner := staleOwner(t, root); owner != 0 {
		t.Error("it is stale while its owner lives")
	}
	kill(claiming)
	if owner := staleOwner(t, root); owner != claiming.Process.Pid || !heir.alive() {
		t.Errorf("stale of %d, want %d; the child is alive: %v", owner, claiming.Process.Pid, heir.alive())
	}
}

func TestFolderIsNotStaleInDoubt(t *testing.T) {
	t.Parallel()
	own, _ := parseOwner(owner())
	const absent = 1 << 22
	dead := fmt.Sprintf("%s:%s:%d:%d\n", own.boot, own.namespace, absent, 10)
	write := func(text string) func(string) error {
		return func(file string) error { return os.WriteFile(file, []byte(text), 0o600) }
	}
	for name, test := range map[string]struct {
		arrange func(file string) error
		want    int
	}{
		"no claim":              {arrange: func(string) error { return nil }},
		"dead owner":            {arrange: write(dead), want: absent},
		"live owner, no lock":   {arrange: write(owner() + "\n")},
		"another boot":          {arrange: write(strings.Replace(dead, own.boot, "b"+own.boot, 1))},
		"another PID namespace": {arrange: write(strings.Replace(dead, ":"+own.namespace+":", ":1"+own.namespace+":", 1))},
		"empty":                 {arrange: write("")},
		"cut":                   {arrange: write(own.boot + ":" + own.namespace)},
		"something else":        {arrange: write("mine\n")},
		"directory":             {arrange: func(file string) error { return os.Mkdir(file, 0o700) }},
		"link": {arrange: func(file string) error {
			if err := os.WriteFile(file+"2", []byte(dead), 0o600); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(file)+"2", file)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := test.arrange(filepath.Join(dir, ClaimName)); err != nil {
				t.Fatal(err)
			}
			if owner := staleOwner(t, openRoot(t, dir)); owner != test.want {
				t.Errorf("stale of %d, want %d", owner, test.want)
			}
		})
	}
}

// A lock alone keeps a folder: its holder may be unknown here.
func TestLockedFolderIsNotStale(t *testing.T) {
	t.Parallel()
	own, _ := parseOwner(owner())
	root := openRoot(t, t.TempDir())
	mine, err := ClaimFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	dead := fmt.Sprintf("%s:%s:%d:%d\n", own.boot, own.namespace, 1<<22, 10)
	if _, err := mine.file.WriteAt([]byte(dead+strings.Repeat("\n", 100)), 0); err != nil {
		t.Fatal(err)
	}
	if err := mine.file.Truncate(int64(len(dead))); err != nil {
		t.Fatal(err)
	}
	if owner := staleOwner(t, root); owner != 0 {
		t.Error("it is stale")
	}
	mine.Release()
	if owner := staleOwner(t, root); owner != 1<<22 {
		t.Errorf("stale of %d", owner)
	}
}

func TestFolderIsClaimedOnce(t *testing.T) {
	t.Parallel()
	root := openRoot(t, t.TempDir())
	mine, err := ClaimFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Release()
	if _, err := ClaimFolder(root); err == nil {
		t.Error("it is claimed again")
	}
	var none *Claim
	none.Release()
}

// A program that cannot wait for its end names what it leaves.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	name, claim, err := MakeTempDir(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(soon(t), agent(t, step{Do: "hang"}))
	if err != nil {
		t.Fatal(err)
	}
	if agents, folders := Unfinished(); !slices.Contains(agents, p.Pid()) || !slices.Contains(folders, name) {
		t.Errorf("got %v, %q; want %d and %q", agents, folders, p.Pid(), name)
	}
	claim.Release()
	p.Stop()
	_, _ = p.Wait()
	if agents, folders := Unfinished(); slices.Contains(agents, p.Pid()) || slices.Contains(folders, name) {
		t.Errorf("got %v, %q at the end", agents, folders)
	}
}

// The folders for temporary files of equal runs have equal names, and none existed
// before.
func TestTempDirNames(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	folder := func(key string) string {
		name, claim, err := MakeTempDir(parent, key)
		if err != nil {
			t.Fatal(err)
		}
		claim.Release()
		info, err := os.Lstat(name)
		if err != nil || info.Mode() != os.ModeDir|0o700 || filepath.Dir(name) != parent || !strings.HasPrefix(filepath.Base(name), TempPrefix) {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		return name
	}
	remove := func(name string) {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	first := folder("a")
	second := folder("a")
	if second == first || folder("b") == first {
		t.Error("one folder for two runs")
	}
	remove(first)
	if again := folder("a"); again != first {
		t.Errorf("got %s and %s", first, again)
	}
	remove(first)
	if err := os.Symlink(t.TempDir(), first); err != nil {
		t.Fatal(err)
	}
	if name := folder("a"); name == first || name == second {
		t.Errorf("%s existed before", name)
	}
	if random := folder(""); random == folder("") {
		t.Error("names without a key are equal")
	}
}

// A folder that another program has put in the place of a new one is not used.
func TestReplacedFolderIsNotNew(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(dir string) error{
		"others can read it": func(dir string) error { return os.Chmod(dir, 0o755) },
		"it is not empty":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "config"), nil, 0o600) },
	} {
		dir := filepath.Join(t.TempDir(), "x")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		folder, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { folder.Close() })
		if err := checkNew(folder); err != nil {
			t.Error(err)
		}
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if checkNew(folder) == nil {
			t.Errorf("accepted although %s", name)
		}
	}
}
