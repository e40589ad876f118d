//go:build linux || darwin

package main

import (
	"context"
	"io"
	"os/exec"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/backends/codex"
	"github.com/busdk/bus-agent/backends/gemini"
	"github.com/busdk/bus-agent/internal/bench/corpus"
	"github.com/busdk/bus-agent/registry"
)

const prompt = "do it"

// runtimeOf returns the runtime that prints so, without its own command and
// instructions: its decoder and its renderer are what is measured.
func runtimeOf(shape corpus.Shape) registry.Runtime {
	rt := map[corpus.Shape]func() registry.Runtime{
		corpus.Claude: claude.Runtime, corpus.Codex: codex.Runtime, corpus.Gemini: gemini.Runtime,
	}[shape]()
	rt.Executables, rt.Run.Command = []string{"stub"}, stubCommand
	rt.Instructions, rt.PrivateTemp, rt.EmptyDirs = nil, false, nil
	return rt
}

// counter counts the bytes written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// rawPipe is the limit: start, copy from the pipe to nowhere, wait.
func (j job) rawPipe() (cost, error) {
	return j.copied(func(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) })
}

// largeBuffer holds more than a pipe does.
const largeBuffer = 256 << 10

// rawLarge is what the limit could be: io.Copy to io.Discard reads 8 KiB at a
// time.
func (j job) rawLarge() (cost, error) {
	return j.copied(func(r io.Reader) (int64, error) {
		return io.CopyBuffer(new(counter), struct{ io.Reader }{r}, make([]byte, largeBuffer))
	})
}

func (j job) copied(all func(io.Reader) (int64, error)) (got cost, err error) {
	got.Wall, got.CPU, err = clock(func() error {
		c := exec.Command(j.stub())
		c.Env = []string{"BENCH_STREAM=" + j.File}
		c.Dir = j.Work
		c.Stdin = strings.NewReader(prompt)
		out, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		if _, err := all(out); err != nil {
			return err
		}
		return c.Wait()
	})
	return got, err
}

// passed runs the stub with a writer for its raw bytes.
func (j job) passed() (cost, error) {
	var raw counter
	return j.throughLibrary(agent.Output{Stdout: &raw})
}

// delivered runs the stub with a callback for its events and a writer for the
// text of them.
func (j job) delivered() (cost, error) {
	var events int64
	var text counter
	got, err := j.throughLibrary(agent.Output{Text: &text, Events: func(*agent.Event) error { events++; return nil }})
	got.Events, got.Text = events, int64(text)
	return got, err
}

func (j job) throughLibrary(out agent.Output) (got cost, err error) {
	r, err := (&bench{dir: j.Dir}).runner(runtimeOf(j.Shape))
	if err != nil {
		return got, err
	}
	req := agent.Request{Prompt: prompt, Workdir: j.Work, Env: []string{"BENCH_STREAM=" + j.File}}
	got.Wall, got.CPU, err = clock(func() error {
		_, err := r.Run(context.Background(), req, out)
		return err
	})
	return got, err
}
