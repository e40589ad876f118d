//go:build soak

package soak

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var logged = flag.Int("logged", 1000, "tasks in the log of BenchmarkRestart")

// BenchmarkRestart starts a server and a worker when the log has -logged tasks that have
// ended, of 18 events each, one in a hundred with a diff of 100 KiB, and one that is open.
// It reports
//
//	s/server     from the start of the server to its first answer
//	s/claim      from the start of the worker to its claim
//	MB-server    highest resident memory
//	MB-worker
func BenchmarkRestart(b *testing.B) {
	f := newFleet(b, b.TempDir())
	f.makeRepository("module-0")
	f.startServers(1)
	address, server := f.addresses[0], f.servers[0]
	if err := server.stop(time.Minute); err != nil {
		b.Fatal(err)
	}
	f.fill(*logged, f.path("store-0"))
	server.start()
	f.awaitServer(address, fmt.Sprintf("evt_%019d", len(filled)**logged))
	var ready, claimed, serverMemory, workerMemory float64
	b.ResetTimer()
	for n := range b.N {
		ref := fmt.Sprintf("open#%d.1", n)
		last, err := f.post(b.Context(), "bus.task.created", "", map[string]any{"work_ref": ref, "recipient": "module-0", "text": "stub: hang"})
		if err != nil {
			b.Fatal(err)
		}
		if err := server.stop(time.Minute); err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		server.start()
		f.awaitServer(address, last)
		ready += time.Since(begun).Seconds()
		begun = time.Now()
		w := f.newProcess("worker", f.workerArgs("worker", "http://"+address, "module-0")...)
		w.start()
		f.await("the claim", 10*time.Minute, func() bool {
			done := false
			_ = Read(b.Context(), "http://"+address, f.token, last, false, func(e Entry) { done = done || e.WorkRef == ref && e.Name == "bus.task.claimed" })
			return done
		})
		claimed += time.Since(begun).Seconds()
		serverMemory, workerMemory = max(serverMemory, peakMemory(b, server)), max(workerMemory, peakMemory(b, w))
		if err := w.stop(time.Minute); err != nil {
			b.Error(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ready/float64(b.N), "s/server")
	b.ReportMetric(claimed/float64(b.N), "s/claim")
	b.ReportMetric(serverMemory, "MB-server")
	b.ReportMetric(workerMemory, "MB-worker")
}

// filled are the events of a task that fill writes.
var filled = slices.Concat([]string{"created", "claimed"}, slices.Repeat([]string{"progress"}, 15), []string{"done"})

// fill writes tasks that have ended to the store of a server that is not running, as the
// server stores them; over HTTP it would take many times as long.
func (f *fleet) fill(tasks int, store string) {
	f.t.Helper()
	server, err := natsserver.NewServer(&natsserver.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: store, JetStreamMaxStore: 1 << 40})
	if err != nil {
		f.t.Fatal(err)
	}
	server.Start()
	defer func() { server.Shutdown(); server.WaitForShutdown() }()
	if !server.ReadyForConnections(30 * time.Second) {
		f.t.Fatal("the NATS server does not start")
	}
	conn, err := nats.Connect("", nats.InProcessServer(server))
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(1000))
	if err != nil {
		f.t.Fatal(err)
	}
	word := base64.RawURLEncoding.EncodeToString
	for n := range tasks {
		ref := fmt.Sprintf("filled#%d.1", n)
		for _, name := range filled {
			holder := ""
			if name != "created" {
				holder = fmt.Sprintf(`,"worker_id":"filler","attempt_id":"attempt-of-%s"`, ref)
			}
			if name == "done" && n%100 == 0 {
				holder += fmt.Sprintf(`,"diff":%q`, strings.Repeat("+ a line\n", 100<<10/9))
			}
			m := nats.NewMsg("bus.events." + word([]byte("local")) + ".task." + word([]byte(ref)))
			m.Header.Set("Bus-Name", "bus.task."+name)
			if name != "created" {
				m.Header.Set("Bus-Conditional", "1")
			}
			m.Data = fmt.Appendf(nil, `{"version":"v1","name":"bus.task.%s","source":"fill","timestamp":%q,"metadata":{"identity_id":"local"},"payload":{"work_ref":%q,"recipient":"module-0","text":"Add a file to the module."%s}}`,
				name, time.Now().UTC().Format(time.RFC3339Nano), ref, holder)
			if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(10 * time.Minute):
		f.t.Fatal("the store does not accept the events")
	}
}

// peakMemory returns the highest resident memory of a process in megabytes.
func peakMemory(b *testing.B, p *process) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kilobytes) / 1000
}
