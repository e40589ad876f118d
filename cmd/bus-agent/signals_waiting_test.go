//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testwait"
)

const (
	once     = `out {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"said"}}` + "\n"
	answered = once + `out {"type":"turn.completed","usage":{}}` + "\n"
	stateDir = "home/.local/state/bus-agent/"
	sessDir  = stateDir + "sessions/"
	runsDir  = stateDir + "runs/"
	taskName = "task-20260101-000000-mine"
	ownHomes = "work/.codex/bus/"
)

// waitingStates are those in which the program waits for others, or works on what
// others have left.
var waitingStates = map[string]busyState{
	"the preferences are locked":  {args: []string{"set", "timeout", "5m"}, arrange: locked("preferences.json.lock"), code: 1},
	"the state folder is locked":  {agent: "claude", play: "converse\n", args: []string{"session", "start", "--agent", "claude", "--name", "one"}, arrange: locked(sessDir + ".lock"), code: 1},
	"the session store is locked": {agent: "claude", play: "converse\n", args: []string{"chat", "--agent", "claude"}, arrange: lockedInTerminal(sessDir + ".lock"), code: 1},
	"the workdir is locked":       {play: up + "hang\n", args: []string{"run", "--text", "x"}, arrange: lockedWorkdir, code: 1},
	"the message bus is locked": {
		play: up + "wait $HOME/go\n" + answered, arrange: lockedBus,
		args: []string{"run", "--text", "x", "--record", "--project", "p", "--task", taskName},
	},
	"at the prompt of a terminal": {agent: "claude", play: "converse\n", args: []string{"chat", "--agent", "claude"}, arrange: typed("", "> "), code: 1},
	"a turn in a terminal":        {agent: "claude", play: "converse\n", args: []string{"chat", "--agent", "claude"}, arrange: typed("work\r", "working"), code: 1},
	"an output pipe without a reader": {
		play: up + endlessText, args: []string{"run", "--text", "x", "--output-format", "ndjson", "-o", "fifo"}, arrange: outputPipe(false), code: 1,
	},
	"an output pipe that is not read": {
		play: up + endlessText, args: []string{"run", "--text", "x", "--output-format", "ndjson", "-o", "fifo"}, arrange: outputPipe(true), code: 1,
	},
	"no reader of a report": {args: []string{"runs", "report"}, arrange: fullPipe(true, false), code: 1},
	"exporting records":     {play: answered, args: []string{"runs", "export", "latest", "--to", "../out.tar.gz"}, arrange: largeRecord(60<<20, 8, ".bus-agent.*", func(s *sandbox, _ string) bool { return exists(s.path("out.tar.gz")) }), code: 1, late: true},
	"removing records":      {play: answered, args: []string{"runs", "prune", "--status", "completed"}, arrange: largeRecord(0, 1000, runsDir+"*/*/runs/.removed-*", func(_ *sandbox, record string) bool { return !exists(record) }), code: 1, late: true},
	"removing the home of a killed run": {
		play: up + "hang\n", args: []string{"run", "--text", "x"}, arrange: killedHome, code: 1, kept: true,
	},
	"removing its own home":       {play: "fill 1000\n" + up + answered, args: []string{"run", "--text", "x"}, arrange: largeHome, late: true},
	"recording without end":       {play: up + endlessText, args: []string{"run", "--text", "x", "--record"}, code: 1},
	"surveying":                   {play: up + "hang\n", args: []string{"run", "--text", "x"}, arrange: reading("work/many", "/bin/mkdir"), code: 1, late: true, kept: true},
	"looking for hooks":           {play: up + "hang\n", args: []string{"run", "--text", "x"}, arrange: reading("work/.git/hooks", "/usr/bin/touch"), code: 1, late: true, kept: true},
	"listing records":             {args: []string{"runs", "list"}, arrange: reading(runsDir+"p", "/bin/mkdir"), code: 1, late: true},
	"showing one of many records": {play: answered, args: []string{"runs", "show", "latest"}, arrange: recorded(reading(runsDir+"p", "/bin/mkdir")), code: 1, late: true},
	"choosing records to remove":  {args: []string{"runs", "prune", "--status", "completed"}, arrange: reading(runsDir+"p", "/bin/mkdir"), code: 1, late: true},
	"choosing records to export":  {args: []string{"runs", "export", "--project", "p", "--to", "../out.tar.gz"}, arrange: reading(runsDir+"p", "/bin/mkdir"), code: 1, late: true},
	"reading many rules":          {agent: "claude", play: up + "hang\n", args: []string{"run", "--text", "x"}, arrange: manyRules, code: 1, late: true, kept: true},
	"removing many stale homes":   {play: up + "hang\n", args: []string{"run", "--text", "x"}, arrange: manyHomes, code: 1, late: true, kept: true},
	"recording into pipes":        {play: up + "wait $HOME/go\n" + endlessText, args: []string{"run", "--text", "x", "--record", "--project", "p", "--task", taskName}, arrange: pipesInRecord, code: 1, late: true},
	"listing homes":               {args: []string{"doctor"}, arrange: reading("work/.codex/bus", "/bin/mkdir"), code: 1, late: true, kept: true},
	"sweeping":                    {args: []string{"doctor", "--sweep", "--owner"}, arrange: killedTemp, code: 1, late: true, kept: true},
}

// reached waits for a condition.
func reached(t *testing.T, what string, done func() bool) {
	t.Helper()
	testwait.Until(t, "the state: "+what, func() (struct{}, bool) { return struct{}{}, done() })
}

// settled waits until a condition has held for a while without a break.
func settled(t *testing.T, holds func() bool) {
	t.Helper()
	const often = 100
	times := 0
	testwait.Until(t, "what settles", func() (int, bool) {
		if times++; !holds() {
			times = 0
		}
		return times, times >= often
	})
}

// awaitSleep waits until no thread of a program has anything to do.
func awaitSleep(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	settled(t, func() bool {
		threads, _ := filepath.Glob("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/task/*/stat")
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "S") {
				return false
			}
		}
		return len(threads) > 1
	})
}

// hold takes the lock of a file or directory until the test is over.
func hold(t *testing.T, name string, flags int) {
	t.Helper()
	f, err := os.OpenFile(name, flags, 0o600)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
}

// opened reports whether a program has a file open.
func opened(cmd *exec.Cmd, name string) bool {
	links, _ := filepath.Glob("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/fd/*")
	for _, link := range links {
		if target, _ := os.Readlink(link); target == name {
			return true
		}
	}
	return false
}

// locked holds the lock that the program waits for.
func locked(name string) func(*testing.T, *sandbox, *exec.Cmd) func() {
	return func(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
		s.makeDir(filepath.Dir(name))
		hold(t, s.path(name), os.O_RDWR|os.O_CREATE)
		return func() { reached(t, name, func() bool { return opened(cmd, s.path(name)) }) }
	}
}

func lockedInTerminal(name string) func(*testing.T, *sandbox, *exec.Cmd) func() {
	return func(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
		await := locked(name)(t, s, cmd)
		term := openTerminal(t)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = term.tty, term.tty, term.tty
		return func() { term.screen(); await() }
	}
}

// lockedWorkdir holds the lock of the workdir, which is wanted once there are
// temporary files.
func lockedWorkdir(t *testing.T, s *sandbox, _ *exec.Cmd) func() {
	hold(t, s.path("work"), os.O_RDONLY)
	return func() { s.untilOne("tmp/bus-agent-*") }
}

// lockedBus locks the messages of a task while the agent runs.
func lockedBus(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
	bus := s.path(runsDir + "p/" + taskName + "/TASK-MESSAGE-BUS.md")
	return func() {
		s.await("home/up")
		hold(t, bus, os.O_RDWR)
		if err := keep(s.path("home/go"), ""); err != nil {
			t.Fatal(err)
		}
		reached(t, bus, func() bool { return opened(cmd, bus) })
	}
}

// typed writes to the program in a terminal once it shows its prompt, and waits for
// what is shown then.
func typed(text, shown string) func(*testing.T, *sandbox, *exec.Cmd) func() {
	return func(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
		term := openTerminal(t)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = term.tty, term.tty, term.tty
		cmd.Args = append(cmd.Args, "--no-color")
		return func() {
			p := &typist{t: t, pty: term, cmd: cmd}
			p.sees("> ")
			if text != "" {
				p.types(text)
				p.sees(shown)
			}
			term.screen()
		}
	}
}

// outputPipe makes the file of --output a pipe that is not read, with or without a
// reader.
func outputPipe(reader bool) func(*testing.T, *sandbox, *exec.Cmd) func() {
	return func(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
		name := s.path("fifo")
		if err := unix.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd.Args[len(cmd.Args)-1] = name
		if !reader {
			return func() { awaitSleep(t, cmd) }
		}
		r, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		if _, err := unix.FcntlInt(r.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
			t.Fatal(err)
		}
		return func() { awaitFull(t, r) }
	}
}

// largeRecord makes a record with many files, and waits until the program has made
// something that matches a pattern, which it removes at its end, or is done.
func largeRecord(size int64, files int, made string, done func(s *sandbox, record string) bool) func(*testing.T, *sandbox, *exec.Cmd) func() {
	return func(t *testing.T, s *sandbox, _ *exec.Cmd) func() {
		s.exits(0, "run", "--text", "x", "--record")
		dir := s.records()[0].Dir
		fill(t, dir, files, size)
		return func() {
			reached(t, made, func() bool {
				found, _ := filepath.Glob(s.path(made))
				return len(found) > 0 || done(s, dir)
			})
		}
	}
}

// reading fills a folder and waits until the program has it, or what is in it, open,
// has come further, or has ended.
func reading(dir, tool string) func(*testing.T, *sandbox, *exec.Cmd) func() {
	return func(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
		s.makeDir(dir)
		names := make([]string, 3000)
		for i := range names {
			names[i] = strconv.FormatInt(1<<60+int64(i), 16)
		}
		make := exec.Command(tool, names...)
		make.Dir = s.path(dir)
		if out, err := make.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return func() {
			reached(t, dir, func() bool {
				fds, err := filepath.Glob("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/fd/*")
				for _, fd := range fds {
					if target, _ := os.Readlink(fd); strings.HasPrefix(target, s.path(dir)) {
						return true
					}
				}
				return err != nil || len(fds) == 0 || exists(s.path("home/up"))
			})
		}
	}
}

// recorded makes a record before arrange.
func recorded(arrange func(*testing.T, *sandbox, *exec.Cmd) func()) func(*testing.T, *sandbox, *exec.Cmd) func() {
	return func(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
		s.exits(0, "run", "--text", "x", "--record")
		return arrange(t, s, cmd)
	}
}

// killedHome makes the private home of a run that was killed, with sessions that are
// to be kept, and waits until the first has been.
func killedHome(t *testing.T, s *sandbox, _ *exec.Cmd) func() {
	home := s.path(ownHomes + "0123456789abcdef")
	s.makeDir(ownHomes + "0123456789abcdef/sessions")
	s.makeStale(home)
	s.write(filepath.Join(home, ".bus-agent-salvage"), `{"tree":"sessions","kept":".","patterns":["*"]}`)
	s.write(s.path(ownHomes+".gitignore"), "# bus-agent keeps private files of agent runs here and removes them.\n# made for it: .codex\n# made for it: .codex/bus\n*\n")
	fill(t, filepath.Join(home, "sessions"), 1000, 0)
	return func() { s.untilOne(ownHomes + "sessions/*") }
}

// manyRules makes files that Claude Code reads, and waits until the program does.
func manyRules(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
	s.makeDir("work/.claude/rules")
	for i := range 3000 {
		s.write(s.path("work/.claude/rules/"+strconv.Itoa(i)+".md"), "@"+strconv.Itoa(i+1)+".md\n")
	}
	return func() {
		reached(t, "the rules", func() bool {
			return opened(cmd, s.path("work/.claude/rules")) || hasEnded(cmd) || exists(s.path("home/up"))
		})
	}
}

// manyHomes makes private homes of a run that was killed, and waits until some have
// been removed.
func manyHomes(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
	const homes = 500
	first := s.path(ownHomes + "0000000000000000")
	s.makeDir(ownHomes + "0000000000000000")
	s.makeStale(first)
	claim, err := os.ReadFile(filepath.Join(first, process.ClaimName))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < homes; i++ {
		home := ownHomes + fmt.Sprintf("%016x", i)
		s.makeDir(home + "/sessions")
		s.write(s.path(home+"/"+process.ClaimName), string(claim))
	}
	if made, _ := filepath.Glob(s.path(ownHomes + "0*")); len(made) != homes {
		t.Fatalf("%d homes", len(made))
	}
	return func() {
		reached(t, "removal", func() bool {
			left, _ := filepath.Glob(s.path(ownHomes + "0*"))
			return len(left) < homes || hasEnded(cmd)
		})
	}
}

// pipesInRecord puts pipes that are not read in the place of the files of a record
// while the agent runs.
func pipesInRecord(t *testing.T, s *sandbox, _ *exec.Cmd) func() {
	return func() {
		s.await("home/up")
		files, _ := filepath.Glob(s.path(runsDir + "p/" + taskName + "/runs/*/*"))
		if len(files) == 0 {
			t.Error("the record has no files")
		}
		for _, name := range append(files, s.path(runsDir+"p/"+taskName+"/TASK-MESSAGE-BUS.md")) {
			if strings.HasSuffix(name, ".part") {
				continue // run-info.yaml, which is being replaced
			}
			pipe := name + ".pipe"
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(pipe, name); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
		}
		if err := keep(s.path("home/go"), ""); err != nil {
			t.Fatal(err)
		}
	}
}

// hasEnded reports whether a program has ended.
func hasEnded(cmd *exec.Cmd) bool {
	fds, err := filepath.Glob("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/fd/*")
	return err != nil || len(fds) == 0
}

// largeHome waits until the home of the agent is being removed.
func largeHome(t *testing.T, s *sandbox, _ *exec.Cmd) func() {
	return func() {
		s.await("home/up")
		reached(t, "removal of the home", func() bool {
			left, _ := filepath.Glob(s.path(ownHomes + "*/filled/*"))
			return len(left) < 1000
		})
	}
}

// killedTemp makes temporary files of a run that was killed.
func killedTemp(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
	dir := s.path("tmp/bus-agent-123")
	s.makeDir("tmp/bus-agent-123/files")
	cmd.Args = append(cmd.Args, strconv.Itoa(s.makeStale(dir)))
	fill(t, filepath.Join(dir, "files"), 2000, 0)
	return func() {
		reached(t, "removal", func() bool {
			_, err := os.Lstat(filepath.Join(dir, "files", "0"))
			return err != nil
		})
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// fill makes files in a directory.
func fill(t *testing.T, dir string, files int, size int64) {
	t.Helper()
	for i := range files {
		name := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
	}
}

// makeStale claims a directory for a process that has ended, and returns its ID.
func (s *sandbox) makeStale(dir string) int {
	s.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "read line")
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	identity, err := process.Identify(cmd.Process.Pid)
	stdin.Close()
	_ = cmd.Wait()
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(filepath.Join(dir, process.ClaimName), identity+"\n")
	return cmd.Process.Pid
}

// untilOne waits for a file that matches a pattern.
func (s *sandbox) untilOne(pattern string) {
	s.t.Helper()
	reached(s.t, pattern, func() bool {
		found, _ := filepath.Glob(s.path(pattern))
		return len(found) > 0
	})
}
