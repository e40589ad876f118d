package eventserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
)

// A task is left out if its latest event settles it and was appended on a condition. What
// comes later is delivered, also after the connection was lost before and after that.
func TestSettledTasksAreLeftOut(t *testing.T) {
	t.Parallel()
	for name, further := range map[string]int{"few tasks": 0, "more than are read one by one": 600} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, fast(t))
			var cuts atomic.Int32 // connections to cut after two lines
			h := serveHTTP(t, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/stream") && cuts.Add(-1) >= 0 {
					w = &cutWriter{ResponseWriter: w, left: 2}
				}
				s.ServeHTTP(w, r)
			}))
			c := client(t, h.URL, "alice")
			query := events.Query{Names: []string{"bus.task.created", "bus.task.done", "bus.task.message"}, Replay: true, Settled: []string{"bus.task.done"}}
			if got := read(t, c, query); len(got) > 0 {
				t.Errorf("an empty log has %q", ids(got))
			}

			var want []string
			publish(t, c, events.Draft{Name: "example.ping"})
			end := func(ref, last string) string {
				p, err := c.Append(t.Context(), task("bus.task.done", ref, ""), last)
				if err != nil {
					t.Fatal(err)
				}
				return p.ID
			}
			create := func(ref string) string { return publish(t, c, task("bus.task.created", ref, "")) }
			end("bus#done", create("bus#done"))
			want = append(want, create("bus#open"), create("bus#said"))
			want = append(want, end("bus#said", want[1]), publish(t, c, task("bus.task.message", "bus#said", "")))
			want = append(want, create("bus#unsure"), publish(t, c, task("bus.task.done", "bus#unsure", "")))
			for i := range further {
				want = append(want, create(fmt.Sprint("bus#further.", i)))
			}
			publish(t, client(t, h.URL, "bob"), task("bus.task.created", "bus#bob", ""))

			got := ids(read(t, c, query))
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("got %d events, want %d: %.300q", len(got), len(want), got)
			}

			// The order of a task is kept, and the stream continues after what it has sent.
			cuts.Store(3)
			var followed []events.Event
			caughtUp := 0
			query.CaughtUp = func() {
				if caughtUp++; caughtUp == 1 {
					followed = append(followed, events.Event{})
					cuts.Store(1)
					h.CloseClientConnections()
					want = append(want, publish(t, c, task("bus.task.message", "bus#done", "")), create("bus#last"))
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			stop := errors.New("stop")
			err := c.Stream(ctx, query, func(e events.Event) error {
				followed = append(followed, e)
				if caughtUp > 0 && e.ID == want[len(want)-1] {
					return stop
				}
				return nil
			})
			if !errors.Is(err, stop) {
				t.Fatal(err)
			}
			split := slices.IndexFunc(followed, func(e events.Event) bool { return e.ID == "" })
			first, later := slices.Compact(slices.Sorted(slices.Values(ids(followed[:split])))), ids(followed[split+1:])
			if !slices.Equal(first, want[:len(want)-2]) || !slices.Equal(later, want[len(want)-2:]) {
				t.Errorf("before: %.300q\nlater: %q", first, later)
			}
			latest := slices.Clone(followed[:split])
			slices.Reverse(latest)
			said := slices.DeleteFunc(latest, func(e events.Event) bool { return !strings.Contains(string(e.Payload), "bus#said") })
			if len(said) < 3 || !slices.IsSortedFunc(said[:3], func(a, b events.Event) int { return strings.Compare(b.ID, a.ID) }) {
				t.Errorf("events of a task out of order: %q", ids(said))
			}
		})
	}
}

// cutWriter fails after some lines.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if w.left -= strings.Count(string(p), "\n"); w.left < 0 {
		return 0, errors.New("cut")
	}
	return w.ResponseWriter.Write(p)
}

func (w *cutWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
