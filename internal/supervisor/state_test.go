package supervisor

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
)

func TestNamesOfSessions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "Z9", "one", "a.b-c_d", "0-", strings.Repeat("n", 64)} {
		if !isName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", ".", "-a", "_a", "a b", "a/b", "a\n", "\na", "ä", "a:", "a@b", "a[", "a`b", "a{", strings.Repeat("n", 65)} {
		if isName(name) {
			t.Errorf("%q is taken", name)
		}
	}
}

// What can be an ID, or begin one, is no name: a command would act on one session
// for the other.
func TestNamesThatCouldBeIDs(t *testing.T) {
	t.Parallel()
	all, other := newEntry(t)
	for _, name := range []string{other.ID, other.ID[:3], "a", "0", "fade", "01234567", "deadbeef"} {
		if _, err := all.Create(t.Context(), Entry{Name: name}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "can be the ID") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"g", "A", "FADE", "fade-1", "f.", "deadbeef0", "shade"} {
		if _, err := all.Create(t.Context(), Entry{Name: name}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A session that crashed keeps its name for as long as it can be gone on with.
func TestNameOfCrashedSession(t *testing.T) {
	t.Parallel()
	all := &Sessions{Folder: filepath.Join(t.TempDir(), "s")}
	begun := time.Now()
	put := func(name, state, session string) Entry {
		t.Helper()
		e, err := all.Create(t.Context(), Entry{Workdir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		begun = begun.Add(time.Second)
		e.Name, e.Started, e.SessionID, e.Stored, e.Supervisor = name, begun, session, state, ""
		if err := all.Save(e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	put("crashed", StateEnded, "native")
	put("crashed", StateLive, "native")
	put("early", StateStarting, "")
	put("ended", StateEnded, "native")
	hidden := put("hidden", StateLive, "native")
	put("hidden", StateEnded, "native")
	for name, handle := range map[string]string{"crashed": "crashed", "hidden": hidden.ID} {
		want := `session "` + name + `" has crashed: "session resume ` + handle + `" goes on with it, "session stop ` + handle + `" puts it down`
		if _, err := all.Create(t.Context(), Entry{Name: name}); !errors.Is(err, agent.ErrUsage) || err.Error() != want {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
	for _, name := range []string{"early", "ended", "new", ""} {
		if _, err := all.Create(t.Context(), Entry{Name: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
