package runner_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The test counts with inotify how often each folder below a workdir is opened.
func TestEachFolderIsListedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	names, opened := map[int32]string{}, map[string]int{}
	if err := os.Mkdir(filepath.Join(b.dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		dir := filepath.Join(b.dir, "a", strconv.Itoa(i), "b")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{dir, filepath.Dir(dir)} {
			wd, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN|unix.IN_CLOSE)
			if err != nil {
				t.Fatal(err)
			}
			names[int32(wd)], opened[dir] = dir, 0
		}
	}
	req := b.request("say ok:")
	req.Workdir = filepath.Join(b.dir, "a") // below the repository's root
	if _, err := b.DryRun(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(fd, buf)
		if err != nil || n <= 0 {
			break
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			size := binary.NativeEndian.Uint32(rest[12:])
			if mask&unix.IN_OPEN != 0 && size == 0 { // of the folder, not of an entry
				opened[names[wd]]++
			}
			rest = rest[unix.SizeofInotifyEvent+size:]
		}
	}
	for dir, n := range opened {
		if n != 1 {
			t.Errorf("%s was opened %d times", dir, n)
		}
	}
}

// A repository beyond the limit is not refused; a warning names what was not searched.
func TestFoldersBeyondTheLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	for i := range 20 {
		if err := os.MkdirAll(filepath.Join(b.dir, strconv.Itoa(i), "x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.SetSurveyEntries(40)
	if plan, err := b.DryRun(t.Context(), b.request("say ok:")); err != nil || len(plan.Warnings) > 0 {
		t.Errorf("at the limit: %q, %v", plan.Warnings, err)
	}
	b.SetSurveyEntries(25)
	plan, err := b.DryRun(t.Context(), b.request("say ok:"))
	if err != nil || len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0], "not searched for") || !strings.Contains(plan.Warnings[0], b.dir+"/") {
		t.Errorf("beyond it: %q, %v", plan.Warnings, err)
	}
}
