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
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/internal/testuser"
	"github.com/busdk/bus-agent/runner"
)

// A record that would take long to parse is reported as damaged.
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

// A folder with too many entries is read in part and reported.
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

// An export has a bounded part of a record with foreign content and reports the rest.
func TestExportIsBounded(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
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
		testneed.Lacking(t, "the file system has no files of eight terabytes: %v", err)
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

// An export has no targets of links and no names that leave the folder when unpacked.
// An unreadable file does not end it.
func TestExportOfHostileNames(t *testing.T) {
	t.Parallel()
	if !testuser.Ordinary(t) {
		return
	}
	store := &Records{Root: t.TempDir()}
	dir, elsewhere := put(t, store.Root, exampleInfo(0)), filepath.Join(t.TempDir(), "id_rsa")
	write(t, elsewhere, "a secret")
	want := []string{"-rf", "~"}
	for _, name := range want {
		write(t, filepath.Join(dir, name), "text")
	}
	hostile := []string{"a\nb", "\x1b[31mred", "con\u202etxt", "\xff", `..\..\evil`, "C:evil", "link", "hard", "pipe", "closed", "unreadable"}
	for _, name := range hostile {
		path, err := filepath.Join(dir, name), error(nil)
		switch name {
		case "link":
			err = os.Symlink(elsewhere, path)
		case "hard":
			err = os.Link(elsewhere, path)
		case "pipe":
			err = unix.Mkfifo(path, 0o600)
		case "closed":
			err = os.Mkdir(path, 0)
		case "unreadable":
			err = os.WriteFile(path, nil, 0)
		default:
			err = os.WriteFile(path, []byte("a secret"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	leftOut, err := store.Export(t.Context(), &out, mustList(t, store, Filter{}))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range leftOut {
		leftOut[i] = filepath.Base(name)
	}
	slices.Sort(leftOut)
	slices.Sort(hostile)
	if !slices.Equal(leftOut, hostile) {
		t.Errorf("left out are %q, want %q", leftOut, hostile)
	}
	into := t.TempDir()
	names := strings.Join(unpack(t, &out, into), "\n")
	for _, name := range want {
		if !strings.Contains(names, "/"+name) {
			t.Errorf("%q is not in it: %s", name, names)
		}
	}
}

// zeros is an endless file of zeros.
type zeros struct{ read int64 }

func (z *zeros) Read(b []byte) (int, error) {
	z.read += int64(len(b))
	clear(b)
	return len(b), nil
}

func TestReadEntriesEndsInDamage(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	for name, from := range map[string]io.Reader{
		"one line":   new(zeros),
		"many lines": strings.NewReader(strings.Repeat("no entry\n", most)),
	} {
		counted := &counter{}
		err := readEvents(io.TeeReader(io.LimitReader(from, 8*most), counted), 1<<10, most, func(*Event) error { return nil })
		if !errors.Is(err, ErrDamaged) || counted.size > 2*most {
			t.Errorf("%s: after %d bytes: %v", name, counted.size, err)
		}
	}
}

func TestReadMessagesIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), busName)
	for range 3 {
		if err := Post(path, Message{Type: "X", Project: "p", Body: "b"}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		most     int64
		messages int
		ok       bool
	}{{info.Size(), 3, true}, {info.Size() - 1, 3, false}, {info.Size(), 2, false}} {
		if messages, err := readMessages(path, test.most, test.messages); (err == nil) != test.ok || test.ok && len(messages) != 3 {
			t.Errorf("%+v: %d messages, %v", test, len(messages), err)
		}
	}
}

// The answer of a run is bounded, whichever file holds it.
func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	for name, mask := range map[string]*runner.Masker{"plain": nil, "masked": runner.NewMasker([]string{"A_KEY=secretsecret"})} {
		path := t.TempDir()
		folder, err := statefile.OpenDir(path)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		r := &record{folder: folder, mask: mask, maxAnswer: 8}
		for size, want := range map[int]string{8: "", 20: "of 20 bytes"} {
			write(t, filepath.Join(path, outputName), strings.Repeat("x", size))
			err := r.writeAnswer(t.Context(), &agent.Result{})
			if size == 20 {
				said := r.putAnswer(t.Context(), strings.NewReader(strings.Repeat("x", size)), int64(size))
				if fmt.Sprint(said) != fmt.Sprint(err) {
					t.Errorf("%s: %v, but %v for the agent's output", name, err, said)
				}
			}
			if (err == nil) != (want == "") || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s, %d bytes: %v", name, size, err)
			}
			if text, err := os.ReadFile(filepath.Join(path, outputName)); err != nil || string(text) != "xxxxxxxx" {
				t.Errorf("%s, %d bytes: %q", name, size, text)
			}
		}
	}
}
