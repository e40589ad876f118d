package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// A stateFile is a file of state and all that is done with it, in a new folder.
type stateFile struct {
	// path is the file, below the folder.
	path string
	// use reads and writes it, and returns what went wrong.
	use func(ctx context.Context, dir string) error
	// append says that the file is written where it is, not replaced: an attack
	// must be refused.
	append bool
	// lock says that the file or its folder is locked.
	lock bool
}

const (
	aTask = "task-20260101-120000-name"
	aRun  = "20260101-1200000000-1-1"
)

var aRunFolder = filepath.Join("demo", aTask, "runs", aRun)

// stateFiles are the kinds of state that are recorded.
var stateFiles = map[string]stateFile{
	"run-info.yaml":    {path: filepath.Join(aRunFolder, "run-info.yaml"), use: useRuns},
	"prompt.md":        {path: filepath.Join(aRunFolder, "prompt.md"), use: useRuns},
	"output.md":        {path: filepath.Join(aRunFolder, "output.md"), use: useRuns},
	"events.ndjson":    {path: filepath.Join(aRunFolder, "events.ndjson"), use: useRuns},
	"agent-stdout.txt": {path: filepath.Join(aRunFolder, "agent-stdout.txt"), use: useRuns},
	"TASK.md":          {path: filepath.Join("demo", aTask, "TASK.md"), use: useRuns},
	"message bus":      {path: filepath.Join("demo", aTask, "TASK-MESSAGE-BUS.md"), use: useBus, append: true, lock: true},
	"agent's output": {path: "stdout.txt", append: true, use: func(ctx context.Context, dir string) error {
		x := runs.Agent("missing")
		err := x.Execute(ctx, &runs.RunContext{RunID: aRun, Prompt: "x", WorkingDir: dir, StdoutPath: filepath.Join(dir, "stdout.txt"), StderrPath: filepath.Join(dir, "stderr.txt")})
		if errors.Is(err, agent.ErrUsage) { // the runtime does not exist
			return nil
		}
		return err
	}},
	"session entry":  {path: sessionFile, use: useSessions},
	"session lock":   {path: ".lock", use: useSessions, append: true, lock: true},
	"old entry":      {path: "0123abcd/entry.json", use: useServed},
	"session log":    {path: "0123abcd/events.1.ndjson", use: useServed},
	"session output": {path: "0123abcd/log", use: useServed},
	"cooldown": {path: "one.json", use: func(_ context.Context, dir string) error {
		s := fallback.NewCooldowns(dir)
		_, _, err := s.Get("one", time.Now())
		_, listErr := s.List(time.Now())
		now := time.Now()
		putErr := s.Put(fallback.Cooldown{Runtime: "one", Kind: agent.KindOf(agent.ErrQuota), Since: now, Until: now.Add(time.Hour)})
		return errors.Join(err, listErr, putErr)
	}},
	"runtime choice": {path: "work/.gastown/runtime.json", use: func(_ context.Context, dir string) error {
		_, warnings := control.FindRuntimeOverrides(nil, filepath.Join(dir, "work"), new(registry.Registry))
		if len(warnings) > 0 {
			return errors.New(strings.Join(warnings, "\n"))
		}
		return nil
	}},
	"hook file": {path: "hooks.ndjson", append: true, use: func(ctx context.Context, dir string) error {
		sink, err := control.OpenFile(filepath.Join(dir, "hooks.ndjson"))
		if err == nil {
			err = errors.Join(sink.Deliver(ctx, control.Payload{}), sink.(io.Closer).Close())
		}
		return err
	}},
	"instructions": {path: "RULES.md", append: true, use: func(_ context.Context, dir string) error {
		w, err := instructions.Open(instructions.Chain{Root: dir, Workdir: dir}, false)
		if err != nil {
			return err
		}
		defer w.Close()
		block := instructions.Block{Path: "RULES.md", Name: "mine", Comment: instructions.CommentHash, Text: "x\n"}
		err = w.AddBlock(block)
		_, cleanErr := instructions.Clean(context.Background(), dir, []instructions.Owned{{Block: &block}})
		return errors.Join(err, cleanErr, w.Undo())
	}},
}

func useRuns(ctx context.Context, dir string) error {
	store := &runs.Records{Root: dir}
	list, problems, err := store.List(ctx, runs.Filter{})
	errs := append(problems, err)
	_, err = store.Find(ctx, "latest")
	errs = append(errs, ignoreUsage(err))
	_, err = store.Export(ctx, io.Discard, list)
	errs = append(errs, err)
	for i := range list {
		for _, name := range []string{runs.FilePrompt, runs.FileStdout, runs.FileOutput, runs.FileEvents} {
			f, err := list[i].Open(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = errors.Join(ignoreDamage(runs.ReadEvents(f, func(*runs.Event) error { return nil })), f.Close())
			}
			errs = append(errs, err)
		}
	}
	recording, err := store.Record(ctx, agent.Recordable{
		Start:   agent.Start{Runtime: "one", Path: "/bin/one", Workdir: "/"},
		Request: agent.Request{Prompt: "x", Labels: agent.Labels{Project: "demo", Task: aTask}},
		Warn:    func(line string) { errs = append(errs, errors.New(line)) },
	})
	errs = append(errs, err)
	if recording.End != nil {
		errs = append(errs, recording.End(ctx, agent.Result{Text: "answer"}, nil))
	}
	errs = append(errs, store.RemoveStale(context.Background(), runs.Filter{}, false))
	for i := range list {
		errs = append(errs, store.Remove(context.Background(), &list[i], true))
	}
	return errors.Join(errs...)
}

func useBus(_ context.Context, dir string) error {
	path := filepath.Join(dir, "demo", aTask, "TASK-MESSAGE-BUS.md")
	_, err := runs.ReadMessages(path)
	return errors.Join(ignoreMissing(err), runs.Post(path, runs.Message{Type: "X", Project: "demo"}))
}

const aSession = "s1"

// sessionFile is where the entry of aSession is.
var sessionFile = func() string {
	sum := sha256.Sum256([]byte(aSession))
	return hex.EncodeToString(sum[:12]) + ".json"
}()

func useSessions(ctx context.Context, dir string) error {
	s := control.NewStore(dir)
	_, getErr := s.Get(aSession)
	if errors.Is(getErr, control.ErrUnknown) {
		getErr = nil
	}
	_, _, err := s.List(control.Filter{})
	_, pruneErr := s.Prune(ctx, time.Now())
	client := &control.Client{Store: s, Host: control.Program{Path: "/bin/true", Args: []string{"true"}}}
	_, startErr := client.Start(ctx, control.StartOptions{
		Identity: control.Identity{SessionID: aSession}, Settings: control.Settings{Workdir: "/"},
	})
	if errors.Is(startErr, agent.ErrAgent) { // it is not a program
		startErr = nil
	}
	return errors.Join(getErr, err, startErr, pruneErr)
}

func useServed(ctx context.Context, dir string) error {
	store := control.NewStore(dir)
	_, problems, listErr := store.List(control.Filter{})
	errs := []error{listErr}
	for _, p := range problems {
		errs = append(errs, p.Err)
	}
	client := &control.Client{Store: store, Host: control.Program{Path: "/bin/true", Args: []string{"true"}}}
	e := control.Entry{SessionID: "0123abcd", NativeID: "native", Folder: "0123abcd", State: session.StateStopped}
	errs = append(errs, client.Watch(ctx, e, control.WatchOptions{Last: 10}, control.Watcher{
		Record: func(*control.LogRecord) error { return nil }, Missed: func(int64) error { return nil },
	}))
	if _, err := client.Resume(ctx, e, control.ResumeOptions{}); !errors.Is(err, agent.ErrAgent) { // it is not a program
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func ignoreUsage(err error) error {
	if errors.Is(err, agent.ErrUsage) {
		return nil
	}
	return err
}

func ignoreDamage(err error) error {
	if errors.Is(err, runs.ErrDamaged) {
		return nil
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// attacks put something hostile in the place of a file. Others than sparse and
// text are not regular files, or not of that name alone.
var attacks = map[string]func(path, foreign string) error{
	"link":         func(path, foreign string) error { return os.Symlink(foreign, path) },
	"link to none": func(path, foreign string) error { return os.Symlink(foreign+"-new", path) },
	"hard link":    func(path, foreign string) error { return os.Link(foreign, path) },
	"named pipe":   func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
	"directory":    func(path, _ string) error { return os.Mkdir(path, 0o700) },
	"device link":  func(path, _ string) error { return os.Symlink("/dev/zero", path) },
	"sparse": func(path, _ string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 8<<40))
	},
	"keys": func(path, _ string) error {
		var b strings.Builder
		for i := range 40_000 {
			fmt.Fprintf(&b, "key%d: value\n", i)
		}
		return os.WriteFile(path, []byte(b.String()), 0o600)
	},
	"JSON keys": func(path, _ string) error {
		all := map[string]int{}
		for i := range 40_000 {
			all[fmt.Sprint("key", i)] = i
		}
		text, err := json.Marshal(all)
		return errors.Join(err, os.WriteFile(path, text, 0o600))
	},
	"deep": func(path, _ string) error {
		return os.WriteFile(path, []byte(strings.Repeat("[", 100_000)+"\n"), 0o600)
	},
	"aliases": func(path, _ string) error {
		text := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
		for c := 'b'; c <= 'j'; c++ {
			text += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
		}
		return os.WriteFile(path, []byte(text), 0o600)
	},
}

// hostileLimit is far above what any of it takes.
const hostileLimit = time.Minute

// Whatever replaces a file of state, reading and writing it ends
// soon, writes nothing elsewhere, and where that is an error names the file.
func TestHostileStateIsBounded(t *testing.T) {
	t.Parallel()
	for kind, file := range stateFiles {
		for name, attack := range attacks {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir, foreign := stateFolder(t, file)
				path := filepath.Join(dir, file.path)
				_ = os.Remove(path)
				if err := attack(path, foreign); err != nil {
					testneed.Lacking(t, "the file system has no such files: %v", err)
				}
				err := endsSoon(t, func(ctx context.Context) error { return file.use(ctx, dir) })
				checkForeign(t, foreign)
				refused := name == "named pipe" || name == "directory" || name != "hard link" && strings.Contains(name, "link")
				if file.append && refused && (err == nil || !strings.Contains(err.Error(), filepath.Base(file.path))) {
					t.Errorf("error %v does not name %s", err, file.path)
				}
			})
		}
	}
}

// A lock that another process holds is waited for within a bound, and no longer
// than the caller waits. The error names the file and what to do.
func TestHeldLockIsBounded(t *testing.T) {
	t.Parallel()
	for kind, file := range stateFiles {
		if !file.lock {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir, _ := stateFolder(t, file)
			path := filepath.Join(dir, file.path)
			held, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := file.use(t.Context(), dir)
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "end that process") {
					t.Errorf("error %v", err)
				}
				if waited := time.Since(begun); waited > 30*time.Second {
					t.Errorf("waited %v", waited)
				}
			})
			if kind == "message bus" { // Post has no context
				return
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("interrupted"))
			if err := file.use(ctx, dir); err == nil || !strings.Contains(err.Error(), "interrupted") {
				t.Errorf("after a cancel: %v", err)
			}
		})
	}
}

// stateFolder returns a folder in which there is a record of a run, and a file
// that must not be written.
func stateFolder(t *testing.T, file stateFile) (dir, foreign string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	foreign = filepath.Join(filepath.Dir(dir), "foreign")
	files := map[string]string{foreign: "foreign"}
	if strings.HasPrefix(file.path, "demo") {
		run := filepath.Join(dir, aRunFolder)
		files[filepath.Join(run, "run-info.yaml")] = "version: 1\nrun_id: " + aRun + "\nproject_id: demo\ntask_id: " + aTask +
			"\nagent: one\nstart_time: 2026-01-01T12:00:00Z\nend_time: 2026-01-01T12:00:01Z\nexit_code: 0\nstatus: completed\n"
		files[filepath.Join(run, "output.md")] = "answer\n"
	}
	files[filepath.Join(dir, file.path)] = ""
	for path, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), writeOnce(path, text)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, foreign
}

func writeOnce(path, text string) error {
	if text == "" {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// endsSoon fails the test when do does not end.
func endsSoon(t *testing.T, do func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hostileLimit/2)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	select {
	case err := <-ended:
		if ctx.Err() != nil {
			t.Errorf("it ended with its context alone: %v", err)
		}
		return err
	case <-time.After(hostileLimit):
		t.Fatal("it does not end")
		return nil
	}
}

func checkForeign(t *testing.T, foreign string) {
	t.Helper()
	text, err := os.ReadFile(foreign)
	if err != nil || string(text) != "foreign" {
		t.Errorf("the foreign file is %.100q, %v", text, err)
	}
	entries, err := os.ReadDir(filepath.Dir(foreign))
	if err != nil || len(entries) != 2 {
		t.Errorf("next to the foreign file are %v, %v", entries, err)
	}
}
