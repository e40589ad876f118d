//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backends/codex"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

const warmUpStarts = 5

// startUp compares commands of bus-agent that only look something up with a Go
// program that does nothing.
func (b *bench) startUp() error {
	command := func(path string, args ...string) work[time.Duration] {
		return timed(func() error {
			c := exec.Command(path, args...)
			c.Env = []string{"PATH=" + b.dir, "HOME=" + b.dir}
			return c.Run()
		})
	}
	costs, err := inTurn(b.starts, warmUpStarts,
		command(filepath.Join(b.dir, "bare")),
		command(b.binary, "detect"),
		command(b.binary, "render", "--text", "Explain {{WHAT}}.", "--var", "WHAT=main.go"),
	)
	if err != nil {
		return err
	}
	bare := median(costs[0], itself)
	for i, name := range []string{"detect", "render"} {
		got := median(costs[i+1], itself)
		ratio := float64(got) / float64(bare)
		b.table.add(row{
			work: "start of " + name, figure: milliseconds(got), limit: "bare Go program " + milliseconds(bare),
			ratio: fmt.Sprintf("%s, %+.3f ms", times(ratio), ms(got-bare)), target: "≤ 1.7 ×, ≤ 1 ms more",
			met: ratio <= 1.7 && got-bare <= time.Millisecond,
		})
	}
	return nil
}

// spawn compares runs of the library with os/exec doing the same: start the
// stub, write the prompt, read all output, wait.
func (b *bench) spawn() error {
	raw := timed(b.rawStub)
	others := otherProcesses()
	for _, r := range []struct {
		name    string
		runtime registry.Runtime
		target  string
	}{
		{"spawn to result", stubRuntime(), "≤ 0.1 ms more"},
		{"the same as Codex, private home and all", codexRuntime(), ""},
	} {
		costs, err := inTurn(b.starts, warmUpStarts, raw, timed(func() error {
			_, err := b.runStub(r.runtime)
			return err
		}))
		if err != nil {
			return err
		}
		limit, got := median(costs[0], itself), median(costs[1], itself)
		b.table.add(row{
			work:   fmt.Sprintf("%s, %d runs, %d other processes", r.name, b.starts, others),
			figure: fmt.Sprintf("%s (min %.3f)", milliseconds(got), ms(slices.Min(costs[1]))),
			limit:  fmt.Sprintf("raw os/exec %s (min %.3f)", milliseconds(limit), ms(slices.Min(costs[0]))),
			ratio:  fmt.Sprintf("%s, %+.3f ms", times(float64(got)/float64(limit)), ms(got-limit)),
			target: r.target, met: got-limit <= time.Millisecond/10,
		})
	}
	return nil
}

// rawStub runs the stub by os/exec.
func (b *bench) rawStub() error {
	c := exec.Command(filepath.Join(b.dir, "stub"))
	c.Env = []string{"PATH=" + b.dir}
	c.Dir = b.work
	c.Stdin = strings.NewReader(prompt)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, io.Discard
	return c.Run()
}

// heldOutput measures how long after its agent has exited a run is over when a
// child of the agent holds its standard output.
func (b *bench) heldOutput() error {
	costs, err := inTurn(b.held, 1, func() (time.Duration, error) {
		result, err := b.runStub(stubRuntime(), "BENCH_HOLD=1")
		over := time.Now()
		if err != nil {
			return 0, err
		}
		exited, err := strconv.ParseInt(result.Text, 10, 64)
		return over.Sub(time.Unix(0, exited)), err
	})
	if err != nil {
		return err
	}
	got := median(costs[0], itself)
	b.table.add(row{
		work: "done after exit with a held stdout", figure: fmt.Sprintf("%s (max %.3f)", milliseconds(got), ms(slices.Max(costs[0]))),
		target: "≤ 20 ms", met: got <= 20*time.Millisecond,
	})
	return nil
}

// runStub runs the stub as rt through the library.
func (b *bench) runStub(rt registry.Runtime, env ...string) (agent.Result, error) {
	r, err := b.runner(rt)
	if err != nil {
		return agent.Result{}, err
	}
	result, err := r.Run(context.Background(), agent.Request{Prompt: "do it", Workdir: b.work, Env: env}, agent.Output{})
	if err == nil && env == nil && result.Text != "done" {
		err = fmt.Errorf("the stub said %q", result.Text)
	}
	return result, err
}

func (b *bench) runner(rt registry.Runtime) (*runner.Runner, error) {
	reg := new(registry.Registry)
	if err := reg.Register(rt); err != nil {
		return nil, err
	}
	return &runner.Runner{Registry: reg, Environ: []string{"PATH=" + b.dir, "HOME=" + b.dir}}, nil
}

func stubRuntime() registry.Runtime {
	return registry.Runtime{
		ID: "stub", Name: "Stub", Executables: []string{"stub"}, InstallURL: "internal/bench/stub",
		Run:     registry.Use{Command: stubCommand},
		Decoder: func() formatters.Decoder { return decoder{} }, ReportsResult: true,
	}
}

func stubCommand(inv registry.Invocation) (agent.Command, error) {
	return agent.Command{Stdin: inv.Prompt}, nil
}

func codexRuntime() registry.Runtime {
	rt := codex.Runtime()
	rt.Executables = []string{"stub"}
	return rt
}

// decoder reads what the stub prints without arguments.
type decoder struct{}

func (decoder) Decode(line []byte, events []agent.Event) []agent.Event {
	if text, ok := bytes.CutPrefix(line, []byte("text:")); ok {
		return append(events, agent.Event{Kind: agent.KindText, Text: string(text)})
	}
	return append(events, agent.Event{Kind: agent.KindResult})
}
