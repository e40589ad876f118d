//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/bench/corpus"
)

// agentLines is how many lines of the claude shape are about 1 MB.
const agentLines = 750

// manyAgents compares agents that run at the same time with os/exec doing the
// same. Each prints half of its output and waits there for all others, so all
// of them are alive when the memory is measured.
func (b *bench) manyAgents() error {
	file, size, err := b.corpusFile("agent", corpus.Claude, agentLines)
	if err != nil {
		return err
	}
	j := job{Shape: corpus.Claude, File: file, Agents: b.agents}
	costs, err := inTurn(b.rounds, 0, b.inChild(2, j.as(manyRaw)), b.inChild(2, j.as(manyAgents)), b.inChild(2, j.as(manyPassed)))
	if err != nil {
		return err
	}
	raw := median(costs[0], wall)
	took := func(c []cost) row {
		ratio := float64(median(c, wall)) / float64(raw)
		return row{
			figure: fmt.Sprintf("%.2f s, %.2f s of processor", median(c, wall).Seconds(), median(c, cpu).Seconds()),
			limit:  fmt.Sprintf("raw os/exec %.2f s, %.2f s of processor", raw.Seconds(), median(costs[0], cpu).Seconds()),
			ratio:  times(ratio), target: "≤ 1.2 ×", met: ratio <= 1.2,
		}
	}
	passed, shown := took(costs[2]), took(costs[1])
	passed.work = fmt.Sprintf("%d agents at once, %.1f MB each, passed through", b.agents, float64(size)/1e6)
	shown.work = "the same decoded, delivered, rendered"
	b.table.add(passed)
	b.table.add(shown)
	heap := func(c cost) float64 { return float64(c.Heap) / float64(b.agents) / 1024 }
	used := median(costs[1], heap)
	b.table.add(row{
		work:   "heap and stacks in use a run, all in the middle",
		figure: fmt.Sprintf("%.1f KiB (%s resident in all)", used, mebibytes(median(costs[1], peak))),
		limit:  fmt.Sprintf("raw os/exec %.1f KiB (%s)", median(costs[0], heap), mebibytes(median(costs[0], peak))),
		target: "≤ 64 KiB", met: used <= 64,
	})
	return nil
}

func (j job) manyRaw() (cost, error) {
	return j.many(func(env []string, out io.Writer) error {
		c := exec.Command(j.stub())
		c.Env, c.Dir = env, j.Work
		c.Stdin = strings.NewReader(prompt)
		pipe, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		if _, err := io.Copy(out, pipe); err != nil {
			return err
		}
		return c.Wait()
	})
}

// manyPassed passes through what the agents print, as manyRaw does.
func (j job) manyPassed() (cost, error) {
	return j.manyRuns(func(out io.Writer) agent.Output { return agent.Output{Stdout: out} })
}

// manyAgents renders it too and delivers its events.
func (j job) manyAgents() (cost, error) {
	return j.manyRuns(func(out io.Writer) agent.Output {
		return agent.Output{Stdout: out, Text: new(counter), Events: func(*agent.Event) error { return nil }}
	})
}

func (j job) manyRuns(output func(out io.Writer) agent.Output) (cost, error) {
	r, err := (&bench{dir: j.Dir}).runner(runtimeOf(j.Shape))
	if err != nil {
		return cost{}, err
	}
	return j.many(func(env []string, out io.Writer) error {
		req := agent.Request{Prompt: prompt, Workdir: j.Work, Env: env, CaptureLimit: -1}
		_, err := r.Run(context.Background(), req, output(out))
		return err
	})
}

// many calls run for all agents at once. Each gets the variables of its stub
// and a writer for what that prints.
func (j job) many(run func(env []string, out io.Writer) error) (got cost, err error) {
	gate := filepath.Join(j.Dir, "gate")
	lock, err := os.Create(gate)
	if err != nil {
		return got, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return got, err
	}
	data, err := os.ReadFile(j.File)
	if err != nil {
		return got, err
	}
	// The stub waits between two lines, as an agent that thinks does.
	middle := int64(len(data) / 2)
	middle += int64(bytes.IndexByte(data[middle:], '\n')) + 1
	env := []string{"BENCH_STREAM=" + j.File, "BENCH_GATE=" + gate}
	before := inUse()
	got.Wall, got.CPU, err = clock(func() error {
		errs := make([]error, j.Agents)
		var half, done sync.WaitGroup
		for i := range j.Agents {
			half.Add(1)
			done.Go(func() {
				w := &halfway{left: middle, reached: half.Done}
				errs[i] = run(env, w)
				if w.left > 0 { // it failed, so half would wait for ever
					half.Done()
				}
			})
		}
		half.Wait()
		got.Heap = inUse() - before
		// Children do not inherit the descriptor: Go opens files with O_CLOEXEC.
		if err := lock.Close(); err != nil {
			return err
		}
		done.Wait()
		return errors.Join(errs...)
	})
	return got, err
}

// halfway calls reached when as many bytes as were left have been written.
type halfway struct {
	left    int64
	reached func()
}

func (h *halfway) Write(b []byte) (int, error) {
	if h.left > 0 {
		if h.left -= int64(len(b)); h.left <= 0 {
			h.reached()
		}
	}
	return len(b), nil
}

// inUse returns the memory that heap and stacks occupy after a collection.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
