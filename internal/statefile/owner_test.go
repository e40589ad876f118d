package statefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/testneed"
)

func TestReadOwned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if text, err := statefile.ReadOwned(link, 4); err != nil || string(text) != "text" {
		t.Errorf("a link to a file of the user: %q, %v", text, err)
	}
	if err := os.Chown(file, 12345, -1); err != nil {
		testneed.LackingAsRoot(t, "a file cannot be given to another user: %v", err)
	}
	if _, err := statefile.ReadOwned(link, 4); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("a file of another user: %v", err)
	}
}
