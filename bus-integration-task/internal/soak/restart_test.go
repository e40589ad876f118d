//go:build soak

package soak

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var logged = flag.Int("logged", 1000, "tasks in the log of BenchmarkRestart")

// BenchmarkRestart starts a server and a worker when the log has -logged tasks that have
// ended, of three events each, and one that is open. It reports
//
//	s/server     from the start of the server to its first answer
//	s/claim      from the start of the worker to its claim
//	MB-server    highest resident memory
//	MB-worker
func BenchmarkRestart(b *testing.B) {
	f := newFleet(b, b.TempDir())
	f.makeRepository("module-0")
	f.startServers(1, "--sync-every", "1m")
	f.fill(*logged)
	address, server := f.addresses[0], f.servers[0]
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

// fill adds tasks that have ended to the log.
func (f *fleet) fill(tasks int) {
	f.t.Helper()
	refs := make(chan string)
	var running sync.WaitGroup
	for range 32 {
		running.Go(func() {
			for ref := range refs {
				last := ""
				for _, name := range []string{"created", "claimed", "done"} {
					p := map[string]any{"work_ref": ref, "recipient": "module-0", "text": "Add a file to the module."}
					if name != "created" {
						p["worker_id"], p["attempt_id"] = "filler", "attempt-of-"+ref
					}
					id, err := f.post(f.t.Context(), "bus.task."+name, last, p)
					if err != nil {
						f.t.Error(err)
						return
					}
					last = id
				}
			}
		})
	}
	for n := range tasks {
		refs <- fmt.Sprintf("filled#%d.1", n)
	}
	close(refs)
	running.Wait()
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
