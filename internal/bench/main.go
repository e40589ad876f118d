// Command bench prints what bus-agent costs beside the limit it is measured
// against, both measured in turn in the same run. It never fails on a figure:
// machines differ.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backends/codex"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

func main() {
	binary := flag.String("bus-agent", "bin/bus-agent", "the binary to measure")
	rounds := flag.Int("n", 200, "rounds of each measurement")
	flag.Parse()
	if err := run(*binary, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(binary string, rounds int) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bus-agent-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"bare", "stub"} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), "./internal/bench/"+name)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("building %s: %w", name, err)
		}
	}
	fmt.Printf("medians of %d rounds, each pair measured in turn\n\n", rounds)
	if err := startUp(dir, binary, rounds); err != nil {
		return err
	}
	return spawn(dir, rounds)
}

// startUp compares `bus-agent detect` with a Go program that does nothing.
func startUp(dir, binary string, rounds int) error {
	env := []string{"PATH=" + dir, "HOME=" + dir}
	command := func(path string, args ...string) func() error {
		return func() error {
			c := exec.Command(path, args...)
			c.Env = env
			return c.Run()
		}
	}
	bare, detect, err := inTurn(rounds, command(filepath.Join(dir, "bare")), command(binary, "detect"))
	if err != nil {
		return err
	}
	fmt.Printf("start of detect                          %8.3f ms   a bare Go program %8.3f ms   %.2f x (limit 2 x)   %+.3f ms (limit +1.5 ms)\n",
		ms(detect), ms(bare), float64(detect)/float64(bare), ms(detect-bare))
	return nil
}

// spawn compares runs of the library with os/exec doing the same: start the
// stub, write the prompt, read all output, wait.
func spawn(dir string, rounds int) error {
	stub := filepath.Join(dir, "stub")
	work, err := os.MkdirTemp(dir, "work")
	if err != nil {
		return err
	}
	raw := func() error {
		c := exec.Command(stub)
		c.Env = []string{"PATH=" + dir}
		c.Dir = work
		c.Stdin = strings.NewReader("do it")
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, io.Discard
		return c.Run()
	}
	for _, row := range []struct {
		name    string
		runtime registry.Runtime
		limit   string
	}{
		{"spawn to result", stubRuntime(), "(limit +0.2 ms)"},
		{"the same as Codex, private home and all", codexRuntime(), ""},
	} {
		limit, got, err := inTurn(rounds, raw, library(row.runtime, dir, work))
		if err != nil {
			return err
		}
		fmt.Printf("%-40s %8.3f ms   raw os/exec       %8.3f ms   %.2f x               %+.3f ms %s\n",
			row.name, ms(got), ms(limit), float64(got)/float64(limit), ms(got-limit), row.limit)
	}
	return nil
}

// library returns a run of rt, whose executable is in path.
func library(rt registry.Runtime, path, workdir string) func() error {
	reg := new(registry.Registry)
	regErr := reg.Register(rt)
	r := &runner.Runner{Registry: reg, Environ: []string{"PATH=" + path, "HOME=" + path}}
	return func() error {
		if regErr != nil {
			return regErr
		}
		result, err := r.Run(context.Background(), agent.Request{Prompt: "do it", Workdir: workdir})
		if err == nil && result.Text != "done" {
			err = fmt.Errorf("the stub said %q", result.Text)
		}
		return err
	}
}

func stubRuntime() registry.Runtime {
	return registry.Runtime{
		ID: "stub", Name: "Stub", Executables: []string{"stub"}, InstallURL: "internal/bench/stub",
		Command: func(r agent.Request) (agent.Command, error) { return agent.Command{Stdin: r.Prompt}, nil },
		Decoder: func() formatters.Decoder { return decoder{} }, ReportsResult: true,
	}
}

func codexRuntime() registry.Runtime {
	rt := codex.Runtime()
	rt.Executables = []string{"stub"}
	return rt
}

type decoder struct{}

func (decoder) Decode(line []byte, events []agent.Event) []agent.Event {
	if text, ok := bytes.CutPrefix(line, []byte("text:")); ok {
		return append(events, agent.Event{Kind: agent.KindText, Text: string(text)})
	}
	return append(events, agent.Event{Kind: agent.KindResult})
}

// inTurn times a and b alternately and returns the median of each.
func inTurn(rounds int, a, b func() error) (medianA, medianB time.Duration, err error) {
	times := [2][]time.Duration{}
	for i := range rounds + 5 {
		for j, f := range []func() error{a, b} {
			begun := time.Now()
			if err := f(); err != nil {
				return 0, 0, err
			}
			if i >= 5 { // the first ones warm up
				times[j] = append(times[j], time.Since(begun))
			}
		}
	}
	return median(times[0]), median(times[1]), nil
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
