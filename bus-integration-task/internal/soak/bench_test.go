package soak

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/tasklog"
	"github.com/busdk/bus-integration-task/worker"
)

// BenchmarkClaims lets workers claim and end tasks that take 50 ms each, over HTTP with one
// server that forces each event to the disk. A task has two appends. It reports
//
//	claims/s     claimed and ended tasks of all workers in a second
//	ms-added     time that a worker needs for one besides the 50 ms
//	trips-added  this time in round trips: empty messages to JetStream with the same kind of
//	             store, from as many publishers, in the same run
func BenchmarkClaims(b *testing.B) {
	for _, workers := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
			trip := roundTrip(b, workers, max(20, b.N/workers))
			log := serveLog(b)
			for i := range b.N {
				if _, err := log.Add(b.Context(), task.Created, task.Payload{WorkRef: fmt.Sprintf("bench#%d.1", i), Recipient: "dev", Text: "bench"}); err != nil {
					b.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var left atomic.Int64
			left.Store(int64(b.N))
			caughtUp, all := make(chan struct{}), make(chan struct{})
			var running sync.WaitGroup
			running.Go(func() {
				_ = log.Follow(ctx, func(e task.Event) error { // to the end of ctx
					if e.Name == task.Done && left.Add(-1) == 0 {
						close(all)
					}
					return nil
				}, sync.OnceFunc(func() { close(caughtUp) }))
			})
			<-caughtUp
			b.ResetTimer()
			for i := range workers {
				running.Go(func() {
					own := *log.Client // with separate connections, like a process
					own.HTTP = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
					defer own.HTTP.CloseIdleConnections()
					w := worker.Worker{
						Worker: task.Worker{ID: fmt.Sprint("w", i), Recipient: "dev"}, Log: &tasklog.Log{Client: &own}, HandBack: -1,
						Handler: pause{},
					}
					if err := w.Run(ctx); err != nil {
						b.Error(err)
					}
				})
			}
			<-all
			b.StopTimer()
			added := b.Elapsed()*time.Duration(workers)/time.Duration(b.N) - turn
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
			b.ReportMetric(float64(added)/float64(time.Millisecond), "ms-added")
			b.ReportMetric(float64(added)/float64(trip), "trips-added")
			cancel()
			running.Wait()
		})
	}
}

const turn = 50 * time.Millisecond

// pause is the work of a task.
type pause struct{}

func (pause) Work(context.Context, *worker.Claim) worker.End {
	time.Sleep(turn)
	return worker.End{Name: task.Done}
}

// serveLog returns the log of a new server.
func serveLog(b *testing.B) *tasklog.Log {
	b.Helper()
	secret := []byte(strings.Repeat("s", eventserver.MinSecretBytes))
	s, err := eventserver.Open(b.Context(), eventserver.Config{Secret: secret, Store: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	h := httptest.NewServer(s)
	b.Cleanup(func() { s.Close(); h.Close() })
	token, err := eventserver.Mint(secret, eventserver.MintOptions{Subject: "bench", Lifetime: time.Hour, Scopes: []string{
		eventserver.ScopeSend, eventserver.ScopeListen, eventserver.ScopeTaskAdmin,
	}})
	if err != nil {
		b.Fatal(err)
	}
	return &tasklog.Log{Client: &events.Client{URL: h.URL, Token: events.StaticToken(token), Source: "bench"}}
}

// roundTrip returns the median time in which JetStream accepts an empty message, while as
// many publishers send n each.
func roundTrip(b *testing.B, publishers, n int) time.Duration {
	b.Helper()
	dir, err := os.MkdirTemp(b.TempDir(), "js")
	if err != nil {
		b.Fatal(err)
	}
	server, err := natsserver.NewServer(&natsserver.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: dir, SyncAlways: true})
	if err != nil {
		b.Fatal(err)
	}
	server.Start()
	defer func() { server.Shutdown(); server.WaitForShutdown() }()
	if !server.ReadyForConnections(30 * time.Second) {
		b.Fatal("the NATS server does not start")
	}
	conn, err := nats.Connect("", nats.InProcessServer(server))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "trips", Subjects: []string{"trips"}, Storage: jetstream.FileStorage}); err != nil {
		b.Fatal(err)
	}
	times := make([][]time.Duration, publishers)
	var running sync.WaitGroup
	for i := range publishers {
		running.Go(func() {
			for range n {
				begun := time.Now()
				if _, err := js.Publish(b.Context(), "trips", nil); err != nil {
					b.Error(err)
					return
				}
				times[i] = append(times[i], time.Since(begun))
			}
		})
	}
	running.Wait()
	all := slices.Concat(times...)
	slices.Sort(all)
	return all[len(all)/2]
}
