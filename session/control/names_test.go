package control_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func TestNamesOfSessions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "Z9", "one", "a.b-c_d", "0-", strings.Repeat("n", 64)} {
		if !control.IsName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", ".", "-a", "_a", "a b", "a/b", "a\n", "\na", "ä", "a:", "a@b", "a[", "a`b", "a{", strings.Repeat("n", 65)} {
		if control.IsName(name) {
			t.Errorf("%q is taken", name)
		}
	}
}

// named starts a session with a name and stops it.
func named(t *testing.T, b *bench, name string) error {
	t.Helper()
	h, err := b.Start(t.Context(), control.StartOptions{Name: name, Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}})
	if err != nil {
		return err
	}
	return b.Stop(t.Context(), h, "")
}

// A name cannot be a possible ID or prefix of one: a command would act on one session
// for the other.
func TestNamesThatCouldBeIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.start(control.StartOptions{}).SessionID
	for _, name := range []string{other, other[:3], "a", "0", "fade", "01234567", "deadbeef"} {
		if err := named(t, b, name); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "can be the ID") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"g", "A", "fade-1", "deadbeef0"} {
		if err := named(t, b, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A session that crashed keeps its name while it can be resumed.
func TestNameOfCrashedSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	begun := time.Now()
	put := func(id, name string, state session.State, native string) {
		t.Helper()
		begun = begun.Add(time.Second)
		save(t, b.Store, control.Entry{SessionID: id, Name: name, Started: begun, NativeID: native, State: state})
	}
	put("1", "crashed", session.StateStopped, "native")
	put("2", "crashed", session.StateCrashed, "native")
	put("3", "early", session.StateCrashed, "")
	put("4", "ended", session.StateStopped, "native")
	put("5", "hidden", session.StateCrashed, "native")
	put("6", "hidden", session.StateStopped, "native")
	for name, label := range map[string]string{"crashed": "crashed", "hidden": "5"} {
		want := `session "` + name + `" has crashed: "session resume ` + label + `" continues it, "session stop ` + label + `" marks it as stopped`
		if err := named(t, b, name); !errors.Is(err, agent.ErrUsage) || err.Error() != want {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
	for _, name := range []string{"early", "ended", "new", ""} {
		if err := named(t, b, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A command with the name of two running sessions would act on one for the other.
func TestResumeWithANameThatIsTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.start(control.StartOptions{Name: "review"})
	if err := b.Stop(t.Context(), first, ""); err != nil {
		t.Fatal(err)
	}
	before := b.until(first, session.StateStopped)
	second := b.start(control.StartOptions{Name: "review"})
	if err := b.Resume(t.Context(), first); !errors.Is(err, control.ErrNameTaken) || !strings.Contains(err.Error(), second.SessionID) {
		t.Errorf("while another one has its name: %v", err)
	}
	if after, err := b.Store.Get(first.SessionID); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("%+v, %v, want %+v", after, err, before)
	}
	if err := b.Stop(t.Context(), second, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.Resume(t.Context(), first); err != nil {
		t.Errorf("after its end: %v", err)
	}
}
