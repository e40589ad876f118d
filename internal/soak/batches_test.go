package soak

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/runner"
)

// batch is the number of concurrent runs.
const batch = 64

// What each of many runs at once delivers is its own, whole and in order.
func TestOrderAndCountAreExactInBatches(t *testing.T) {
	atOnce(t)
	box := newSandbox(t)
	r := newRunner(t, box)
	var each [batch]scenario
	for i := range each {
		talk := passage{5, []saying{called(), returned(fmt.Sprintf(`%d\n`, i), 2+i%10), message(fmt.Sprintf("run %d ", i), 5)}}
		each[i] = scenario{name: fmt.Sprintf("run %d", i), says: []passage{talk, once(succeeded())}, answer: last(talk)}
		play, err := json.Marshal(each[i].raw())
		if err != nil {
			t.Fatal(err)
		}
		box.write(each[i].name, play)
	}
	runs := size(10_000, 500)
	begun := time.Now()
	for first := 0; first < runs && !t.Failed(); first += batch {
		var wg sync.WaitGroup
		for i := range min(batch, runs-first) {
			wg.Go(func() {
				if err := each[i].deliver(t, r, box); err != nil {
					t.Errorf("run %d of batch %d: %v", i, first/batch, err)
				}
			})
		}
		wg.Wait()
	}
	if large {
		took := time.Since(begun)
		fmt.Fprintf(os.Stdout, "%-36s %d runs, %d at once %8.2f s %8.2f ms each\n", "batches", runs, batch, took.Seconds(), took.Seconds()*1000/float64(runs))
	}
}

// newRunner returns a runner whose only runtime is the stub.
func newRunner(t *testing.T, box *sandbox) *runner.Runner {
	t.Helper()
	rt, err := described.Runtime("stub", []byte(`{"executables": ["stub"], "install_url": "https://example.com", "output": "ndjson:codex"}`), registry.Default())
	if err != nil {
		t.Fatal(err)
	}
	reg := new(registry.Registry)
	if err := reg.Register(rt); err != nil {
		t.Fatal(err)
	}
	return &runner.Runner{
		Registry: reg,
		Environ:  []string{"PATH=" + box.path("bin"), "HOME=" + box.path("home"), "TMPDIR=" + box.dir},
		Warn:     func(line string) { t.Error("warning:", line) },
	}
}

// deliver runs the scenario once and compares what arrives.
func (s *scenario) deliver(t *testing.T, r *runner.Runner, box *sandbox) error {
	raw, event, readable := newComparison(s.raw()), newComparison(s.events()), newComparison(s.text())
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	result, err := r.Run(t.Context(), agent.Request{
		Prompt: "x", Workdir: box.path("work"), Args: []string{"--play=" + filepath.Join(box.dir, s.name)},
	}, agent.Output{Stdout: raw, Text: readable, Events: func(e *agent.Event) error {
		line.Reset()
		err := encoder.Encode(e)
		if err == nil {
			_, err = event.Write(line.Bytes())
		}
		return err
	}})
	if err != nil {
		return err
	}
	if result.Stdout.Size != s.raw().Size() {
		err = fmt.Errorf("the size of the output is %d, want %d", result.Stdout.Size, s.raw().Size())
	}
	return errors.Join(err, raw.end(), event.end(), readable.end(), s.answer(result.Text))
}
