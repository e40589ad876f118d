//go:build soak

package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	duration   = flag.Duration("duration", time.Minute, "how long faults happen at least")
	serverN    = flag.Int("servers", 3, "servers of the cluster")
	workerN    = flag.Int("workers", 20, "workers")
	recipientN = flag.Int("recipients", 10, "recipients, each with a repository")
	taskN      = flag.Int("tasks", 0, "least number of tasks that must end while faults happen, however long that takes")
	lease      = flag.Duration("lease", 5*time.Second, "of a claim")
	seed       = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the faults")
	calm       = flag.Bool("calm", false, "no faults")
)

// Tasks end once, and their commits land once, whatever happens to workers, servers and
// the network between them.
func TestSoak(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it looks for processes in /proc")
	}
	dir, err := os.MkdirTemp("", "bus-task-soak-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the store, the repositories and the logs are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	fmt.Printf("soak: seed %d, %s\n", *seed, *duration)
	f := newFleet(t, dir)
	s := &soak{fleet: f, ended: map[string]bool{}, random: rand.New(rand.NewPCG(*seed, 0)), seen: map[string][]string{}}
	for i := range *recipientN {
		s.recipients = append(s.recipients, fmt.Sprint("module-", i))
		f.makeRepository(s.recipients[i])
	}
	f.startServers(*serverN)
	f.startWorkers(*workerN, s.recipients, *lease)
	s.run()
	s.check()
}

// A soak creates tasks and faults.
type soak struct {
	*fleet
	recipients []string
	random     *rand.Rand
	created    []string
	faults     map[string]int

	mu       sync.Mutex
	ended    map[string]bool // of created tasks
	seen     map[string][]string
	reopened int
}

// run creates tasks and faults for the duration, and until enough tasks have ended. Then it
// waits until all have.
func (s *soak) run() {
	ctx, cancel := context.WithCancel(s.t.Context())
	var followers sync.WaitGroup
	for i, address := range s.addresses {
		followers.Go(func() { s.follow(ctx, fmt.Sprint("server-", i), address) })
	}
	begun := time.Now()
	enough := func() bool { return time.Since(begun) >= *duration && len(s.created)-s.open() >= *taskN }
	over, faults := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(faults)
		if !*calm {
			s.disturb(over)
		}
	}()
	for !enough() && !s.t.Failed() {
		if s.open() < 2**workerN {
			s.create(ctx)
			continue
		}
		time.Sleep(20 * time.Millisecond)
	}
	inTime, took := len(s.created)-s.open(), time.Since(begun).Round(time.Second)
	close(over)
	<-faults
	s.await("the end of all tasks", 5*time.Minute, func() bool { return s.open() == 0 })
	fmt.Printf("soak: %d tasks, %d of them ended within %s; faults %v; %d rounds reopened\n", len(s.created), inTime, took, s.faults, s.reopened)
	cancel()
	followers.Wait()
}

// create creates a task that adds a file.
func (s *soak) create(ctx context.Context) {
	n := len(s.created) + 1
	ref := fmt.Sprintf("soak#%d.1", n)
	file := FileOf(ref)
	body := fmt.Sprintf("stub: say I add %[1]s.\nstub: write %[1]s of %[2]s\nstub: run 0 go test ./...\n"+
		`stub: say {"task_complete":true,"status":"done","summary":"add a file","changed_files":[%[1]q],"plan_closed":false,`+
		`"no_matching_plan_item":true,"no_matching_plan_reason":"there is no PLAN.md","required_checks":[{"command":"go test ./...","result":"pass","reason":""}],"remaining_blockers":[]}`,
		file, ref)
	s.created = append(s.created, ref)
	if _, err := s.post(ctx, "bus.task.created", "", map[string]any{
		"work_ref": ref, "recipient": s.recipients[n%len(s.recipients)], "sender": "soak", "text": "Add " + file + ".", "body": body,
	}); err != nil {
		s.t.Errorf("task %s cannot be created: %v", ref, err)
	}
}

// open returns the number of tasks that have not ended.
func (s *soak) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.created) - len(s.ended)
}

// follow reads the log of a server to the end of ctx, and connects again after each cut.
func (s *soak) follow(ctx context.Context, name, address string) {
	last := ""
	for ctx.Err() == nil {
		_ = Read(ctx, "http://"+address, s.token, last, true, func(e Entry) { // a server that was killed
			last = e.ID
			s.read(ctx, name, e)
		})
		time.Sleep(100 * time.Millisecond)
	}
}

// read reads an event as a user does: a task whose work cannot be promoted, since that of
// another task was promoted first, is reopened.
func (s *soak) read(ctx context.Context, reader string, e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[reader] = append(s.seen[reader], e.ID)
	if reader != "server-0" {
		return
	}
	switch e.Name {
	case "bus.task.done", "bus.task.failed", "bus.task.canceled":
		s.ended[e.WorkRef] = true
	case "bus.task.blocked":
		if !strings.Contains(e.Text, "cannot be promoted") {
			s.ended[e.WorkRef] = true
			return
		}
		s.reopened++
		go func() {
			if _, err := s.post(ctx, "bus.task.reopened", e.ID, map[string]any{"work_ref": e.WorkRef, "text": "Do it again."}); err != nil && ctx.Err() == nil {
				s.t.Errorf("task %s cannot be reopened: %v", e.WorkRef, err)
			}
		}()
	}
}

// disturb makes faults until over is closed, and undoes the last ones. With a longer lease
// they take longer and are as much rarer.
func (s *soak) disturb(over <-chan struct{}) {
	s.faults = map[string]int{}
	var running sync.WaitGroup
	defer running.Wait()
	busy := map[int]chan struct{}{} // workers with a fault
	var servers chan struct{}       // closed when the servers are well
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(s.random.Int64N(int64(most-least)))
	}
	for {
		select {
		case <-over:
			return
		case <-time.After(between(*lease/25, 3**lease/10)):
		}
		if s.random.IntN(8) == 0 && isDone(servers) {
			servers = make(chan struct{})
			name, fault := s.serverFault(between)
			s.faults[name]++
			running.Go(func() { defer close(servers); fault() })
			continue
		}
		i := s.random.IntN(len(s.workers))
		if !isDone(busy[i]) {
			continue
		}
		done := make(chan struct{})
		busy[i] = done
		name, fault := s.workerFault(s.workers[i], s.proxies[i], between)
		s.faults[name]++
		running.Go(func() { defer close(done); fault() })
	}
}

func isDone(c chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// workerFault returns a fault of a worker or its network.
func (s *soak) workerFault(w *process, p *proxy, between func(least, most time.Duration) time.Duration) (string, func()) {
	pause := between(*lease/5, 2**lease)
	link := func(l link) func() {
		return func() { p.set(l); time.Sleep(pause); p.set(passing) }
	}
	switch s.random.IntN(6) {
	case 0, 1:
		return "worker killed", func() { w.signal(syscall.SIGKILL); w.wait(); time.Sleep(pause / 4); w.start() }
	case 2:
		return "worker paused", func() { w.signal(syscall.SIGSTOP); time.Sleep(pause); w.signal(syscall.SIGCONT) }
	case 3:
		return "worker cut off", link(refusing)
	case 4:
		return "worker unheard", link(silent)
	}
	return "connections cut", func() { p.set(passing) }
}

// serverFault returns a fault of a server, or, seldom, of the majority.
func (s *soak) serverFault(between func(least, most time.Duration) time.Duration) (string, func()) {
	order := s.random.Perm(len(s.servers))
	one := s.servers[order[0]]
	pause := between(*lease/5, 2**lease)
	routes := func(l link) {
		for _, p := range s.routes[order[0]] {
			p.set(l)
		}
	}
	switch n := s.random.IntN(8); {
	case n < 3:
		return "server killed", func() { one.signal(syscall.SIGKILL); one.wait(); time.Sleep(pause / 2); one.start() }
	case n < 5 && len(order) > 1:
		return "server cut off", func() { routes(refusing); time.Sleep(pause); routes(passing) }
	case n < 7 || len(order) == 1:
		return "server paused", func() { one.signal(syscall.SIGSTOP); time.Sleep(pause); one.signal(syscall.SIGCONT) }
	}
	other := s.servers[order[1]]
	return "majority lost", func() {
		one.signal(syscall.SIGSTOP)
		other.signal(syscall.SIGKILL)
		other.wait()
		time.Sleep(pause / 2)
		other.start()
		one.signal(syscall.SIGCONT)
	}
}

// check stops all processes and checks what is left.
func (s *soak) check() {
	t := s.t
	for _, w := range s.workers {
		if err := w.stop(time.Minute); err != nil {
			t.Error(err)
		}
	}
	s.cleanUp(s.recipients)
	var logs [][]Entry
	for i, address := range s.addresses {
		var log []Entry
		s.await("the log of "+address, time.Minute, func() bool {
			log = nil
			return Read(t.Context(), "http://"+address, s.token, "", false, func(e Entry) { log = append(log, e) }) == nil
		})
		logs = append(logs, log)
		if i > 0 && !slices.EqualFunc(log, logs[0], func(a, b Entry) bool { return a.ID == b.ID && string(a.payload) == string(b.payload) }) {
			t.Errorf("server %d has another log than server 0: %d and %d events", i, len(log), len(logs[0]))
		}
	}
	for _, server := range s.servers {
		if err := server.stop(time.Minute); err != nil {
			t.Error(err)
		}
	}
	s.report(Check(logs[0], Expectation{Created: s.created, Accepted: s.acceptances(), Seen: s.seen}))
	ends := map[string]int{}
	for _, e := range logs[0] {
		if kind := strings.TrimPrefix(e.Name, "bus.task."); kind == "done" || kind == "blocked" || kind == "failed" {
			ends[kind]++
			if kind == "failed" || kind == "blocked" && !strings.Contains(e.Text, "cannot be promoted") {
				t.Errorf("task %s: %s: %s", e.WorkRef, kind, e.Text)
			}
		}
	}
	fmt.Printf("soak: %d events, of which %d were seen to be accepted; ends %v\n", len(logs[0]), len(s.accepted), ends)
	s.checkFiles(logs[0])
	if left := s.processes(); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
}

// checkFiles checks the repositories, and that no temporary file is left.
func (s *soak) checkFiles(log []Entry) {
	of := map[string]string{} // recipient of a task
	for i, ref := range s.created {
		of[ref] = s.recipients[(i+1)%len(s.recipients)]
	}
	for _, recipient := range s.recipients {
		dir := s.path("workspace", recipient)
		commits, err := ReadCommits(s.t.Context(), dir)
		if err != nil {
			s.t.Fatal(err)
		}
		s.report(CheckCommits(log, func(ref string) bool { return of[ref] == recipient }, commits))
		s.report(Stale(s.t.Context(), dir))
	}
	for _, name := range []string{"trees", "tmp"} {
		left, err := Files(s.path(name), func(string) bool { return true })
		if err != nil {
			s.t.Fatal(err)
		}
		s.report(left)
	}
}

func (s *soak) report(found []string) {
	const most = 50
	for i, what := range found {
		if i == most {
			s.t.Errorf("and %d more", len(found)-most)
			return
		}
		s.t.Error(what)
	}
}
