package fallback

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

func TestQuotaOrLoginErrorStartsACooldown(t *testing.T) {
	t.Parallel()
	for kind, length := range map[error]time.Duration{agent.ErrQuota: QuotaCooldown, agent.ErrAuthentication: AuthenticationCooldown} {
		w := newWorld(t, "alpha", "beta")
		w.Runtimes = []string{"beta"}
		w.steps["alpha"] = step{err: kind}
		w.runs(w.request("alpha"), "alpha", "beta")
		want := []Cooldown{{Runtime: "alpha", Kind: agent.KindOf(kind), Reason: "no luck", Since: w.clock.UTC(), Until: w.clock.Add(length).UTC()}}
		got, err := w.Cooldowns.List(w.clock)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v: cooldowns (-want +got):\n%s%v", kind, diff, err)
		}

		// It is left out while that lasts, and then tried again.
		w.clock = w.clock.Add(length - time.Second)
		result, err := w.runs(w.request("alpha"), "beta")
		if err != nil || len(result.Attempts) != 1 || result.Attempts[0].Runtime != "alpha" || result.Attempts[0].Kind != agent.KindOf(kind) ||
			!strings.Contains(result.Attempts[0].Error, "in cooldown until") || result.Model != "auto" {
			t.Errorf("%v, %+v", err, result)
		}
		w.warned("alpha is in cooldown until " + want[0].Until.Local().Format("15:04:05") + " (" + agent.KindOf(kind) + "); it is skipped")
		w.clock = w.clock.Add(time.Second)
		w.runs(w.request("alpha"), "alpha", "beta")

		// A success clears it: all are in cooldown, so all are tried in order.
		w.steps["beta"] = step{err: kind}
		w.runs(w.request("beta"), "beta")
		w.steps["alpha"] = step{}
		w.runs(w.request("alpha"), "alpha")
		w.warned()
		if got, err = w.Cooldowns.List(w.clock); err != nil || len(got) != 1 || got[0].Runtime != "beta" {
			t.Errorf("%+v, %v", got, err)
		}
		w.runs(w.request("beta"), "beta") // there is no other
	}
}

// The preparation of the candidates takes none of the time of the runs, also where the first
// of them is left out.
func TestTimeBeginsWithTheFirstRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"beta"}
	w.steps["alpha"] = step{err: agent.ErrQuota}
	w.runs(w.request("alpha"), "alpha", "beta")
	asked := 0
	w.now = func() time.Time {
		if asked++; asked > 1 {
			return w.clock.Add(time.Minute)
		}
		return w.clock
	}
	req := w.request("alpha")
	req.Timeout = 2 * time.Second
	if _, err := w.runs(req, "beta"); err != nil {
		t.Fatal(err)
	}
	if got := w.requests[len(w.requests)-1].Timeout; got != req.Timeout {
		t.Errorf("the timeout of beta is %s", got)
	}
}

// When all are in cooldown they are tried nevertheless, and those that are not there do not
// count.
func TestAllInCooldown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"gamma", "beta"}
	w.steps["alpha"], w.steps["beta"] = step{err: agent.ErrQuota}, step{err: agent.ErrAuthentication}
	for range 2 {
		if _, err := w.runs(w.request("alpha"), "alpha", "beta"); !errors.Is(err, agent.ErrAuthentication) {
			t.Error(err)
		}
	}
}

func TestLengthOfACooldown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes, w.Cooldown = []string{"beta"}, 30*time.Hour
	w.steps["alpha"] = step{err: agent.ErrAuthentication}
	w.runs(w.request("alpha"), "alpha", "beta")
	w.runs(w.request("alpha"), "beta")
	w.warned("alpha is in cooldown until " + w.clock.Add(30*time.Hour).Format("2006-01-02 15:04:05"))

	w.Cooldown = -1 // then nothing is read or written
	before, err := w.Cooldowns.List(w.clock)
	w.clock = w.clock.Add(time.Minute)
	w.runs(w.request("alpha"), "alpha", "beta")
	after, _ := w.Cooldowns.List(w.clock)
	if diff := cmp.Diff(before, after); diff != "" || err != nil {
		t.Errorf("cooldowns (-want +got):\n%s%v", diff, err)
	}
}

// Other failures start no cooldown.
func TestOtherErrorsStartNoCooldown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "beta")
	w.Runtimes = []string{"beta"}
	w.steps["beta"] = step{err: agent.ErrAgent}
	w.runs(w.request("alpha"), "(not_installed)", "beta")
	if entries, err := os.ReadDir(w.Cooldowns.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestCooldownFiles(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := NewCooldowns(filepath.Join(t.TempDir(), "a", "resting"))
	if list, err := s.List(now); list != nil || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	c := Cooldown{Runtime: "alpha:local", Kind: "quota", Reason: "x", Since: now, Until: now.Add(time.Minute)}
	for range 2 {
		if err := s.Put(c); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "alpha:local.json" {
		t.Fatalf("%v, %v", entries, err)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, "alpha:local.json": 0o600} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: %v, %v", name, info, err)
		}
	}
	for at, want := range map[time.Duration]bool{-time.Second: false, 0: true, 59 * time.Second: true, time.Minute: false} {
		if _, ok, err := s.Get("alpha:local", now.Add(at)); ok != want || err != nil {
			t.Errorf("after %v: cooldown %v, want %v; %v", at, ok, want, err)
		}
	}
	for _, want := range []bool{true, false} {
		if cleared, err := s.Clear("alpha:local"); cleared != want || err != nil {
			t.Errorf("cleared %v, %v", cleared, err)
		}
	}
	for _, token := range []string{"", "../x", "A", "a/b", "a\x00"} {
		c.Runtime = token
		_, _, getErr := s.Get(token, now)
		_, clearErr := s.Clear(token)
		if err := s.Put(c); err == nil || getErr == nil || clearErr == nil {
			t.Errorf("%q is taken for a runtime", token)
		}
	}
}

// Bad files are warned of and change nothing else.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	good := `{"version":1,"runtime":"alpha","kind":"quota","reason":"x","since":"2030-01-02T00:00:00Z","until":"2030-01-20T00:00:00Z"}`
	for want, write := range map[string]func(path string) error{
		"not a cooldown":          func(p string) error { return os.WriteFile(p, []byte("{"), 0o600) },
		"version 2;":              func(p string) error { return os.WriteFile(p, []byte(strings.Replace(good, "1", "2", 1)), 0o600) },
		`is about runtime "beta"`: func(p string) error { return os.WriteFile(p, []byte(strings.Replace(good, "alpha", "beta", 1)), 0o600) },
		"starts no cooldown":      func(p string) error { return os.WriteFile(p, []byte(strings.Replace(good, "quota", "whim", 1)), 0o600) },
		"ends before it begins": func(p string) error {
			return os.WriteFile(p, []byte(strings.Replace(good, "2030-01-20", "2020-01-20", 1)), 0o600)
		},
		"longer than 30 days": func(p string) error {
			return os.WriteFile(p, []byte(strings.Replace(good, "2030-01-20", "9999-01-20", 1)), 0o600)
		},
		"more than 65536 bytes": func(p string) error { return os.WriteFile(p, []byte(good+strings.Repeat(" ", maxFile)), 0o600) },
		"not a regular file":    func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"symbolic link": func(p string) error {
			elsewhere := filepath.Join(filepath.Dir(p), "elsewhere")
			return errors.Join(os.WriteFile(elsewhere, []byte(good), 0o600), os.Symlink(elsewhere, p))
		},
		"others can write": func(p string) error {
			return errors.Join(os.WriteFile(p, []byte(good), 0o600), os.Chmod(filepath.Dir(p), 0o777))
		},
	} {
		w := newWorld(t, "alpha", "beta")
		w.Runtimes = []string{"beta"}
		if err := os.MkdirAll(w.Cooldowns.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := write(filepath.Join(w.Cooldowns.dir, "alpha.json")); err != nil {
			t.Fatal(err)
		}
		w.steps["alpha"] = step{err: agent.ErrTimeout}
		w.runs(w.request("alpha"), "alpha")
		w.warned("cooldown file of alpha unreadable; ignoring it: ")
		if want != "symbolic link" && !strings.Contains(w.warnings[0], want) {
			t.Errorf("warning %q lacks %q", w.warnings[0], want)
		}
		if list, err := w.Cooldowns.List(w.clock); len(list) != 0 || err == nil || !strings.Contains(err.Error(), "alpha.json: ") {
			t.Errorf("%s: %v, %v", want, list, err)
		}
	}
}

// A state folder that cannot be used fails no run.
func TestNoStateFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"beta"}
	w.steps["alpha"] = step{err: agent.ErrQuota}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Cooldowns = NewCooldowns(filepath.Join(blocked, "resting"))
	w.runs(w.request("alpha"), "alpha", "beta")
	w.warned("cooldown file of alpha unreadable; ignoring it", "cooldown file of beta unreadable; ignoring it", "cannot store the cooldown of alpha: ", "trying beta", "cannot clear the cooldown of beta")

	w.Cooldowns = nil
	w.Chain.Runner.Environ = append(w.Chain.Runner.Environ, "HOME=nowhere")
	w.runs(w.request("alpha"), "alpha", "beta")
	w.warned("cannot read cooldowns; ignoring them: ", "trying beta")
}

func TestDefaultDir(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]string{
		"HOME=/h":                         "/h/.local/state/bus-agent/resting",
		"HOME=/h\nXDG_STATE_HOME=/s":      "/s/bus-agent/resting",
		"HOME=/h\nXDG_STATE_HOME=current": "/h/.local/state/bus-agent/resting",
		"HOME=h":                          "",
	} {
		if got, err := DefaultDir(strings.Split(environ, "\n")); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", environ, got, err, want)
		}
	}
}

// The last writer wins, and readers see whole files.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	s := NewCooldowns(filepath.Join(t.TempDir(), "resting"))
	now := time.Now()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 15 {
				c := Cooldown{Runtime: "alpha", Kind: "quota", Reason: strings.Repeat("x", 5000), Since: now, Until: now.Add(time.Hour)}
				if err := s.Put(c); err != nil {
					t.Error(err)
				}
				if _, _, err := s.Get("alpha", now); err != nil {
					t.Error(err)
				}
				if _, err := s.Clear("alpha"); err != nil {
					t.Error(err)
				}
				if _, err := s.List(now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// FuzzCooldown reads any file: a cooldown of the runtime or an error.
func FuzzCooldown(f *testing.F) {
	f.Add([]byte(`{"version":1,"runtime":"alpha","kind":"quota","reason":"x","since":"2030-01-02T00:00:00Z","until":"2030-01-02T01:00:00Z"}`))
	f.Add([]byte(`{"version":1,"runtime":"alpha","kind":"authentication","since":"2030-01-02T00:00:00+01:00","until":"9999-12-31T23:59:59Z"}`))
	f.Add([]byte(`{"version":1,"runtime":"beta"}`))
	f.Add([]byte(`null`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseCooldown(text, "alpha")
		if err != nil {
			return
		}
		if c.Runtime != "alpha" || !c.Until.After(c.Since) || c.String() == "" || c.active(c.Until) || !c.active(c.Since) {
			t.Errorf("%q is read as %+v", text, c)
		}
		s := NewCooldowns(filepath.Join(t.TempDir(), "resting"))
		if err := s.Put(c); err != nil {
			t.Fatal(err)
		}
		again, ok, err := s.Get("alpha", c.Since)
		if err != nil || !ok || !again.Until.Equal(c.Until) || again.Kind != c.Kind {
			t.Errorf("%+v is read again as %+v, %v, %v", c, again, ok, err)
		}
	})
}
