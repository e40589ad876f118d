package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
)

// What cannot be attached is a usage error before anything starts, and is not waited for.
func TestAttachRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, size int64, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if size > 0 {
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	image, text := write("a.png", 0, "\x89PNG\r\n\x1a\n"), write("a.txt", 0, "abc")
	for name, c := range map[string]struct{ file, want string }{
		"a file that is missing":                 {filepath.Join(dir, "none"), "no such file"},
		"a directory":                            {dir, "not a regular file"},
		"a pipe":                                 {pipeName(t), "not a regular file"},
		"a device":                               {"/dev/zero", "not a regular file"},
		"an empty file":                          {write("empty", 0, ""), "is empty"},
		"a program":                              {write("program", 0, "\x00\x01"), "neither an image"},
		"a file that is too large":               {write("large", agent.MaxAttachmentBytes+1, ""), "too large"},
		"an image for a runtime that takes none": {image, "cannot pass the file"},
	} {
		code, _, errs := call(t, "run", "--agent", "alpha", "--text", "x", "--attach", text, "--attach", c.file)
		if code != 2 || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") > 2 {
			t.Errorf("%s: exit code %d, %q; want %q", name, code, errs, c.want)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(text, link); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call(t, "run", "--agent", "alpha", "--text", "x", "--attach", link, "--dry-run")
	const want = "attachment: link (text/plain, 3 bytes, sha256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad)\n"
	if code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
}
