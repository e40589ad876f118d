package runs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A record whose text would take long to read is damaged, and named.
func TestHostileInfoIsDamaged(t *testing.T) {
	t.Parallel()
	const head = "run_id: x\nstatus: completed\nstart_time: 2026-01-01T12:00:00Z\n"
	many := func(n int, line string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, line, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ text, want string }{
		"keys":       {head + many(40_000, "k%d: v\n"), "256 KiB"},
		"fewer keys": {head + many(1_500, "k%d: v\n"), "more than 1000 keys"},
		"flow keys":  {head + "x: {" + many(1_500, "k%d,") + "}\n", "more than 1000 keys"},
		"values":     {head + "x: [" + many(25_000, "%d,") + "]\n", "more than 20000 values"},
		"deep":       {head + "x: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n", "more than 16 levels"},
		"aliases":    {head + "a: &a [x]\nb: [*a,*a]\n", "anchors or aliases"},
		"merge":      {"a: &a {model: x}\n<<: *a\n" + head, "anchors or aliases"},
		"few keys":   {head + many(900, "k%d: v\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseInfo([]byte(c.text))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// A folder with very many entries is read to a bound, and named.
func TestListIsBounded(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, exampleInfo(0))
	var budget listBudget
	budget.read.Store(maxListed)
	if names, err := folders(root, "", &budget); len(names) != 0 || !errors.Is(err, errTooMany) || !strings.Contains(err.Error(), root) {
		t.Errorf("%q, %v", names, err)
	}
	budget.read.Store(maxListed - 1)
	if names, err := folders(root, "", &budget); len(names) != 1 || err == nil {
		t.Errorf("%q, %v", names, err)
	}
}

// Of a record that holds what a recorder does not write, an export has a part, and
// the rest is named.
func TestExportIsBounded(t *testing.T) {
	t.Parallel()
	store := &Store{Root: t.TempDir()}
	dir := put(t, store.Root, exampleInfo(0))
	write(t, filepath.Join(dir, outputName), "answer")
	deep := dir
	for range 2 * maxExportedDepth {
		deep = filepath.Join(deep, "d")
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sparse"), "")
	if err := os.Truncate(filepath.Join(dir, "sparse"), 8<<40); err != nil {
		t.Skip(err)
	}
	var out bytes.Buffer
	leftOut, err := store.Export(t.Context(), &out, mustList(t, store, Filter{}))
	if err != nil || len(leftOut) != 2 || !strings.HasSuffix(leftOut[0], "d/…") || !strings.HasSuffix(leftOut[1], "/sparse") {
		t.Errorf("left out are %q, %v", leftOut, err)
	}
	compressed, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for r := tar.NewReader(compressed); ; files++ {
		if _, err := r.Next(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if files != 3+maxExportedDepth { // its folder, run-info.yaml, output.md
		t.Errorf("%d entries", files)
	}
}

// zeros is a file of zeros that does not end.
type zeros struct{ read int64 }

func (z *zeros) Read(b []byte) (int, error) {
	z.read += int64(len(b))
	clear(b)
	return len(b), nil
}

func TestReadEntriesEndsInDamage(t *testing.T) {
	t.Parallel()
	z := new(zeros)
	err := ReadEntries(z, func(*Entry) error { return nil })
	if !errors.Is(err, ErrDamaged) || z.read > 2*maxDamage {
		t.Errorf("after %d bytes: %v", z.read, err)
	}
}

func TestReadMessagesIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), busName)
	if err := Post(path, Message{Type: "X", Project: "p", Body: "b"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Repeat(string(text), maxMessages+1))
	if _, err := ReadMessages(path); err == nil || !strings.Contains(err.Error(), "messages") {
		t.Errorf("error %v", err)
	}
	write(t, path, "")
	if err := os.Truncate(path, maxBus+1); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if _, err := ReadMessages(path); err == nil || time.Since(begun) > time.Minute {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
}
