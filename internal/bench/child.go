//go:build linux || darwin

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/internal/bench/corpus"
)

// What is compared in memory and processor time is done in a separate
// process, which starts as small as any and reports what it cost.

// childArgument makes this program such a process.
const childArgument = "child"

// A job is what such a process does.
type job struct {
	Mode   mode
	Shape  corpus.Shape
	File   string // what the agents print, or what is read
	Dir    string // where the stub is
	Work   string
	Agents int // at once

	Protocol string // of sessions
}

type mode string

const (
	rawPipe    mode = "raw pipe"    // os/exec, io.Copy to discard
	rawLarge   mode = "raw large"   // the same with a large buffer
	passed     mode = "passed"      // the library, raw bytes to a writer
	delivered  mode = "delivered"   // the library, events to a callback, text to a writer
	rendered   mode = "rendered"    // from memory: decoded, delivered, rendered
	decoded    mode = "decoded"     // from memory: decoded and delivered
	unmarshal  mode = "unmarshal"   // from memory: encoding/json
	manyRaw    mode = "many raw"    // os/exec, agents at once
	manyPassed mode = "many passed" // the library, agents at once, raw bytes to a writer
	manyAgents mode = "many agents" // the same, events and text too
	talkRaw    mode = "talk raw"    // os/exec, conversations at once
	talkMany   mode = "talk many"   // the library, sessions at once
)

// A cost is what a job took.
type cost struct {
	Wall, CPU   time.Duration
	Peak        int64 // resident memory of the process, in bytes; 0: not known
	Lines       int64 // where they are counted
	Events      int64
	Text        int64 // bytes of text
	Allocations uint64
	Heap        int64 // in use by heap and stacks in the middle, more than at the start
}

// inChild returns the work of doing j in a process that uses that many
// processors.
func (b *bench) inChild(processors int, j job) work[cost] {
	j.Dir, j.Work = b.dir, b.work
	return func() (cost, error) {
		text, err := json.Marshal(j)
		if err != nil {
			return cost{}, err
		}
		c := exec.Command(b.self, childArgument, string(text))
		c.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(processors))
		c.Stderr = os.Stderr
		out, err := c.Output()
		if err != nil {
			return cost{}, fmt.Errorf("%s: %w", j.Mode, err)
		}
		var got cost
		err = json.Unmarshal(out, &got)
		return got, err
	}
}

func child(text string, out io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	does := map[mode]func(job) (cost, error){
		rawPipe: job.rawPipe, rawLarge: job.rawLarge, passed: job.passed, delivered: job.delivered,
		rendered: job.rendered, decoded: job.decoded, unmarshal: job.unmarshal,
		manyRaw: job.manyRaw, manyPassed: job.manyPassed, manyAgents: job.manyAgents, talkRaw: job.talkRaw, talkMany: job.talkMany,
	}[j.Mode]
	if does == nil {
		return fmt.Errorf("no job %q", j.Mode)
	}
	got, err := does(j)
	if err != nil {
		return err
	}
	got.Peak = peakMemory()
	return json.NewEncoder(out).Encode(got)
}

// clock measures f's time and what this process, without its children, spent.
func clock(f func() error) (wall, cpu time.Duration, err error) {
	spent, begun := processorTime(), time.Now()
	err = f()
	return time.Since(begun), processorTime() - spent, err
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory reads the most memory this process has had. What getrusage reports
// includes the process that started this one.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if text, ok := strings.CutPrefix(string(line), "VmHWM:"); ok {
			kibibytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kibibytes << 10
		}
	}
	return 0
}

func (j job) stub() string { return filepath.Join(j.Dir, "stub") }
