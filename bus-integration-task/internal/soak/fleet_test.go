//go:build soak

package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/worker/backend/stubagent"
)

func TestMain(m *testing.M) {
	stubagent.Play()
	os.Exit(m.Run())
}

// A fleet is the servers, workers and repositories of a soak, all below one folder.
type fleet struct {
	t         testing.TB
	dir       string
	environ   []string
	token     string
	addresses []string // of the servers
	servers   []*process
	workers   []*process
	proxies   []*proxy   // one for each worker
	routes    [][]*proxy // of each server: to and from the others

	mu       sync.Mutex
	accepted map[string]string // names of accepted events, by ID
}

func newFleet(t testing.TB, dir string) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: dir, accepted: map[string]string{}}
	for _, name := range []string{"home", "tmp", "logs", "workspace", "stub"} {
		if err := os.Mkdir(f.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", f.path("bus-integration-task"), "../../cmd/bus-integration-task")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	if err := stubagent.Install(f.path("stub"), "codex"); err != nil {
		t.Fatal(err)
	}
	f.environ = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.path("home"), "TMPDIR=" + f.path("tmp"), "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1",
		"BUS_API_JWT_SECRET=" + strings.Repeat("soak", 16), "BUS_EVENTS_CLUSTER_SECRET=between the servers",
		"BUS_EVENTS_LISTENER_RETRY_MIN=100ms", "BUS_EVENTS_LISTENER_RETRY_MAX=1s", "GORACE=atexit_sleep_ms=0",
	}
	f.token = f.run("events", "token", "--for", "worker")
	if err := os.WriteFile(f.path("worker-token"), []byte(f.token), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fleet) path(names ...string) string {
	return filepath.Join(append([]string{f.dir}, names...)...)
}

// run runs the program to its end.
func (f *fleet) run(args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), f.path("bus-integration-task"), args...)
	cmd.Env = f.environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("%q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// makeRepository makes the repository of a recipient.
func (f *fleet) makeRepository(recipient string) {
	f.t.Helper()
	dir := f.path("workspace", recipient)
	if err := os.Mkdir(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("soak\n"), 0o644); err != nil {
		f.t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-qm", "begin"}} {
		if _, err := git(f.t.Context(), dir, args...); err != nil {
			f.t.Fatal(err)
		}
	}
}

// startServers starts a cluster of n servers and waits until it takes events.
func (f *fleet) startServers(n int, more ...string) {
	f.t.Helper()
	f.addresses = unusedAddresses(f.t, n)
	routes := unusedAddresses(f.t, n)
	f.routes = make([][]*proxy, n)
	for i := range n {
		args := []string{"events", "serve", "--listen", f.addresses[i], "--store", f.path(fmt.Sprint("store-", i))}
		args = append(args, more...)
		if n > 1 {
			args = append(args, "--cluster", "soak", "--server-name", fmt.Sprint("server-", i), "--cluster-listen", routes[i],
				"--cluster-advertise", "127.0.0.1:1") // so that servers use only their routes
			for j, route := range routes {
				if i != j {
					p := newProxy(f.t, []string{route}, func(string, string) {})
					f.routes[i], f.routes[j] = append(f.routes[i], p), append(f.routes[j], p)
					args = append(args, "--cluster-route", p.listener.Addr().String())
				}
			}
		}
		f.servers = append(f.servers, f.newProcess(fmt.Sprint("server-", i), args...))
	}
	for _, s := range f.servers {
		s.start()
	}
	for _, address := range f.addresses {
		f.awaitServer(address, "")
	}
}

// awaitServer waits until the events of a server after one can be read.
func (f *fleet) awaitServer(address, after string) {
	f.t.Helper()
	f.await("server "+address, time.Minute, func() bool {
		return Read(f.t.Context(), "http://"+address, f.token, after, false, func(Entry) {}) == nil
	})
}

// unusedAddresses returns loopback addresses that are not in use now.
func unusedAddresses(t testing.TB, n int) (list []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list
}

// startWorkers starts n workers of recipients in turn, each behind a proxy.
func (f *fleet) startWorkers(n int, recipients []string, lease time.Duration) {
	f.t.Helper()
	for i := range n {
		p := newProxy(f.t, f.addresses, f.accept)
		name := fmt.Sprint("worker-", i)
		w := f.newProcess(name, f.workerArgs(name, p.url(), recipients[i%len(recipients)], "--lease", lease.String())...)
		f.proxies, f.workers = append(f.proxies, p), append(f.workers, w)
		w.start()
	}
}

func (f *fleet) workerArgs(name, url, recipient string, more ...string) []string {
	return append([]string{
		"--events-url", url, "--events-token-file", f.path("worker-token"), "--worker-id", name, "--recipient", recipient,
		"--workspace-root", f.path("workspace"), "--worktree-root", f.path("trees"), "--agent-backend", "codex-appserver",
		"--codex-command", f.path("stub", "codex"), "--worktree", "--commit", "--commit-message", SubjectOf("{work_ref}"), "--rebase",
		"--safe-crash-retry-count", "10", "--one-worker-per-recipient=false", "--blocked-worktrees", "remove", "--hand-back", "5s",
	}, more...)
}

// cleanUp starts a worker of each recipient once more, which removes what lost workers have
// left.
func (f *fleet) cleanUp(recipients []string) {
	var running sync.WaitGroup
	for _, recipient := range recipients {
		running.Go(func() {
			last := f.newProcess("last-"+recipient, f.workerArgs("last-"+recipient, "http://"+f.addresses[0], recipient, "--idle-timeout", "1s")...)
			last.start()
			last.wait()
			if code := last.cmd.ProcessState.ExitCode(); code != 0 {
				f.t.Errorf("%s: %s", last.name, last.cmd.ProcessState)
			}
		})
	}
	running.Wait()
}

func (f *fleet) accept(id, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted[id] = name
}

func (f *fleet) acceptances() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.accepted)
}

// await waits until ok reports true.
func (f *fleet) await(what string, limit time.Duration, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: not so after %s", what, limit)
		}
	}
}

// post appends an event to a task whose latest event has the ID last. The ID that it
// returns is empty if the task has a later event, which may be this one.
func (f *fleet) post(ctx context.Context, name, last string, payload map[string]any) (id string, err error) {
	body, err := json.Marshal(map[string]any{"name": name, "last_id": last, "payload": payload})
	if err != nil {
		return "", err
	}
	for i := range 100 {
		id, err = f.postTo(ctx, f.addresses[i%len(f.addresses)], body)
		if err == nil || ctx.Err() != nil {
			return id, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return "", err
}

func (f *fleet) postTo(ctx context.Context, address string, body []byte) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/api/v1/events/append", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+f.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer struct{ ID, Name string }
	switch response.StatusCode {
	case http.StatusConflict: // it was stored before, or the task has another event
		return "", nil
	case http.StatusAccepted:
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			return "", err
		}
		f.accept(answer.ID, answer.Name)
		return answer.ID, nil
	}
	return "", fmt.Errorf("the server answers %s", response.Status)
}

// A process is a running program that can be ended and started again.
type process struct {
	fleet *fleet
	name  string
	args  []string
	cmd   *exec.Cmd
	ended chan struct{}
}

func (f *fleet) newProcess(name string, args ...string) *process {
	p := &process{fleet: f, name: name, args: args}
	f.t.Cleanup(func() { p.signal(syscall.SIGKILL); p.wait() })
	return p
}

func (p *process) start() {
	p.fleet.t.Helper()
	log, err := os.OpenFile(p.fleet.path("logs", p.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.fleet.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(p.fleet.path("bus-integration-task"), p.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.fleet.environ, log, log
	if err := cmd.Start(); err != nil {
		p.fleet.t.Fatal(err)
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() { _ = cmd.Wait(); close(ended) }() // its state is read later
}

func (p *process) signal(s syscall.Signal) {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // it may have ended
	}
}

func (p *process) wait() {
	if p.ended != nil {
		<-p.ended
	}
}

// stop ends the process as an operator does, and reports how it ended otherwise than well.
func (p *process) stop(limit time.Duration) error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.signal(syscall.SIGQUIT) // its log gets the stacks
		p.wait()
		return fmt.Errorf("%s was still running %s after SIGTERM", p.name, limit)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s: %s; see %s", p.name, p.cmd.ProcessState, p.fleet.path("logs", p.name))
	}
	return nil
}

// processes lists the processes that have the folder of the fleet in their environment.
func (f *fleet) processes() (found []string) {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range all {
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(f.dir)) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			found = append(found, fmt.Sprintf("%s %q", filepath.Base(filepath.Dir(name)), bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
		}
	}
	return found
}
