package runs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExportUnpackedIsAStore(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	for i := range 3 {
		dir := put(t, store.Root, exampleInfo(i))
		write(t, filepath.Join(dir, outputName), strings.Repeat("done\n", 10_000*i))
		write(t, filepath.Join(dir, infoName+".lock"), "")
		write(t, filepath.Join(dir, "run-info.1.yaml.tmp"), "x")
		write(t, filepath.Join(filepath.Dir(filepath.Dir(dir)), taskName), "do it\n")
		if err := os.MkdirAll(filepath.Join(dir, "notes", "of"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "notes", "of", "mine.md"), "x")
		if i > 0 {
			if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(dir, "link")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := mustList(t, store, Filter{})
	var first, second bytes.Buffer
	leftOut, err := store.Export(t.Context(), &first, list[:2])
	if err != nil || len(leftOut) != 4 || !strings.HasSuffix(leftOut[0], "/link") {
		t.Fatal(leftOut, err)
	}
	if _, err := store.Export(t.Context(), &second, []Run{list[1], list[0], list[1]}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same runs give other bytes")
	}
	unpacked := &Records{Root: t.TempDir()}
	names := unpack(t, &first, unpacked.Root)
	got := mustList(t, unpacked, Filter{})
	for i := range got {
		if text, err := os.ReadFile(filepath.Join(got[i].Dir, outputName)); err != nil || len(text) != 50_000*(2-i) {
			t.Errorf("%d bytes of output, %v", len(text), err)
		}
		got[i].Dir = list[i].Dir
	}
	if diff := cmp.Diff(list[:2], got); diff != "" {
		t.Error(diff)
	}
	all := strings.Join(names, "\n")
	for text, n := range map[string]int{taskName: 2, "notes/of/mine.md": 2, ".lock": 0, ".tmp": 0, "link": 0, "pipe": 0, store.Root: 0, "..": 0} {
		if strings.Count(all, text) != n {
			t.Errorf("%q is in it %d times, want %d", text, strings.Count(all, text), n)
		}
	}
}

// unpack unpacks an archive whose files and folders are private to their owner.
func unpack(t *testing.T, from io.Reader, into string) (names []string) {
	t.Helper()
	compressed, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(compressed); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Mode&0o077 != 0 {
			t.Errorf("%+v", h)
		}
		names = append(names, h.Name)
		path := filepath.Join(into, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
		case tar.TypeReg:
			text, readErr := io.ReadAll(archive)
			err = errors.Join(readErr, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600))
		default:
			t.Errorf("%s is of type %c", h.Name, h.Typeflag)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestExportFails(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	run, err := ReadRun(put(t, store.Root, exampleInfo(0)))
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Export(canceled, io.Discard, []Run{run}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := (&Records{Root: t.TempDir()}).Export(t.Context(), io.Discard, []Run{run}); err == nil {
		t.Error("a run of another store is exported")
	}
	full := errors.New("full")
	write(t, filepath.Join(run.Dir, outputName), strings.Repeat("done\n", 100_000))
	if _, err := store.Export(t.Context(), writerFunc(func([]byte) (int, error) { return 0, full }), []Run{run}); !errors.Is(err, full) {
		t.Error(err)
	}
	if err := os.RemoveAll(run.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Export(t.Context(), io.Discard, []Run{run}); err == nil {
		t.Error("a run that was removed is exported")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
