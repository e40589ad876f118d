package events_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
)

// waiting is a context that calls a function when something first waits for its end.
type waiting struct {
	context.Context
	begins func()
}

func (w waiting) Done() <-chan struct{} {
	w.begins()
	return w.Context.Done()
}

// A token file that is being replaced is not a refused token: tasks must not end for it.
func TestReplacedTokenFileIsAwaited(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "missing"} {
		path := filepath.Join(t.TempDir(), "token")
		if before == "" {
			write(t, path, "", 0o600)
		}
		replace := sync.OnceFunc(func() { write(t, path, "new\n", 0o600) })
		token, err := events.TokenFileWithin(path, time.Minute)(waiting{t.Context(), replace}, "")
		if token != "new" || err != nil {
			t.Errorf("%q: %q, %v", before, token, err)
		}
	}
}

func TestUnreadableTokenFile(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "token"), "", 0o600)
	for path, want := range map[string]error{
		file:             events.ErrUnauthorized,
		file + "-absent": events.ErrUnauthorized,
		file + "/inside": events.ErrUnavailable, // as any failure of the system
	} {
		c := &events.Client{URL: "http://127.0.0.1:1", Token: events.TokenFileWithin(path, 0)}
		if _, err := c.Publish(t.Context(), events.Draft{Name: "a.b"}); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := events.TokenFileWithin(file, time.Hour)(canceled, ""); !errors.Is(err, events.ErrUnavailable) {
		t.Error(err)
	}
}

const mountVariable = "BUS_TEST_TOKEN_ON_MOUNT"

// Secrets of containers are readable for all, and on a read-only mount.
func TestTokenFileOnReadOnlyMount(t *testing.T) {
	if path := os.Getenv(mountVariable); path != "" { // in the namespace below
		if _, err := events.ResolveToken(events.TokenOptions{File: path}); err != nil {
			t.Error(err)
		}
		return
	}
	t.Parallel()
	if exec.Command("unshare", "--user", "--map-root-user", "--mount", "true").Run() != nil {
		t.Skip("the system allows no user namespaces, so no mount can be made")
	}
	path := write(t, filepath.Join(t.TempDir(), "secrets", "token"), "secret-token", 0o444)
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec",
		`mount --bind "$1" "$1"; mount -o remount,bind,ro "$1" 2>/dev/null || mount -o remount,bind,ro,nosuid,nodev "$1"; exec "$2" -test.run='^TestTokenFileOnReadOnlyMount$'`,
		"sh", filepath.Dir(path), os.Args[0])
	cmd.Env = append(os.Environ(), mountVariable+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
