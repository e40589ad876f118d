//go:build linux || darwin

package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"time"

	"github.com/busdk/bus-agent/internal/bench/corpus"
)

func wall(c cost) time.Duration { return c.Wall }
func cpu(c cost) time.Duration  { return c.CPU }
func peak(c cost) int64         { return c.Peak }

// throughput measures runs that print much, of each shape.
func (b *bench) throughput() error {
	for i, shape := range corpus.Shapes() {
		file, size, err := b.corpusFile(string(shape), shape, b.lines)
		if err != nil {
			return err
		}
		if i == 0 {
			if err := b.passThrough(shape, file, size); err != nil {
				return err
			}
		}
		if _, err := b.deliver(shape, file, size, b.lines, 1); err != nil {
			return err
		}
		if err := b.decode(shape, file, size); err != nil {
			return err
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// passThrough compares what the library does to raw bytes with a copy.
func (b *bench) passThrough(shape corpus.Shape, file string, size int64) error {
	j := job{Shape: shape, File: file}
	costs, err := inTurn(b.rounds, 0, b.inChild(2, j.as(rawPipe)), b.inChild(2, j.as(passed)), b.inChild(2, j.as(rawLarge)))
	if err != nil {
		return err
	}
	raw, got := median(costs[0], wall), median(costs[1], wall)
	ratio := float64(raw) / float64(got)
	b.table.add(row{
		work:   fmt.Sprintf("%s, %d lines, raw pass-through", megabytes(size), b.lines),
		figure: perSecond(size, got),
		limit:  fmt.Sprintf("raw pipe %s (with a large buffer %.0f)", perSecond(size, raw), rate(size, median(costs[2], wall))), ratio: times(ratio),
		target: "≥ 0.90 ×", met: ratio >= 0.90,
	})
	return nil
}

// delivery is what deliver found, to be compared with that of a longer run.
type delivery struct {
	ratio float64
	peak  int64
}

// deliver compares a run whose events are all delivered and whose text is
// rendered with a copy, both on one or two processors besides that of the agent.
func (b *bench) deliver(shape corpus.Shape, file string, size int64, lines, processors int) (delivery, error) {
	j := job{Shape: shape, File: file}
	costs, err := inTurn(b.rounds, 0, b.inChild(processors, j.as(rawPipe)), b.inChild(processors, j.as(delivered)))
	if err != nil {
		return delivery{}, err
	}
	raw, got := median(costs[0], wall), median(costs[1], wall)
	d := delivery{ratio: float64(raw) / float64(got), peak: median(costs[1], peak)}
	b.table.add(row{
		work: fmt.Sprintf("%s, %d lines as %s: decoded, delivered, rendered, %s", megabytes(size), lines, shape,
			[]string{"one core", "two cores"}[processors-1]),
		figure: fmt.Sprintf("%s, %.2f s of processor, %s", perSecond(size, got), median(costs[1], cpu).Seconds(),
			mebibytes(d.peak)),
		limit:  fmt.Sprintf("raw pipe %s, %.2f s of processor", perSecond(size, raw), median(costs[0], cpu).Seconds()),
		ratio:  times(d.ratio),
		target: "≥ 600 MB/s; stretch ≥ 0.50 ×", met: rate(size, got) >= 600,
	})
	return d, nil
}

// decode compares the same from memory with encoding/json, and counts the
// allocations of decoding alone. On one core processor time is the time it takes
// where nothing else runs.
func (b *bench) decode(shape corpus.Shape, file string, size int64) error {
	j := job{Shape: shape, File: file}
	costs, err := inTurn(b.rounds, 0, b.inChild(1, j.as(rendered)), b.inChild(1, j.as(unmarshal)), b.inChild(1, j.as(decoded)))
	if err != nil {
		return err
	}
	got, limit := median(costs[0], cpu), median(costs[1], cpu)
	ratio := float64(limit) / float64(got)
	b.table.add(row{
		work:   fmt.Sprintf("the same as %s from memory, by processor time", shape),
		figure: perSecond(size, got), limit: "encoding/json " + perSecond(size, limit), ratio: times(ratio),
		target: "≥ 3 ×, ≥ 600 MB/s", met: ratio >= 3 && rate(size, got) >= 600,
	})
	perLine := func(c cost) float64 { return float64(c.Allocations) / float64(c.Lines) }
	allocated := median(costs[2], perLine)
	b.table.add(row{
		work:   fmt.Sprintf("allocations a line as %s, decoded", shape),
		figure: fmt.Sprintf("%.2f", allocated), limit: fmt.Sprintf("encoding/json %.2f", median(costs[1], perLine)),
		target: "≤ 2", met: allocated <= 2,
	})
	return nil
}

// long measures a run of five times the lines, and the same from a file.
func (b *bench) long() error {
	shape := corpus.Claude
	file, size, err := b.corpusFile("short", shape, b.longLines/5)
	if err != nil {
		return err
	}
	short, err := b.deliver(shape, file, size, b.longLines/5, 2)
	if err != nil {
		return err
	}
	file, size, err = b.corpusFile("long", shape, b.longLines)
	if err != nil {
		return err
	}
	long, err := b.deliver(shape, file, size, b.longLines, 2)
	if err != nil {
		return err
	}
	more := float64(long.peak-short.peak) / (1 << 20)
	b.table.add(row{
		work:   "five times the lines against one time",
		figure: fmt.Sprintf("%.2f × of the raw pipe, %s", long.ratio, mebibytes(long.peak)),
		limit:  fmt.Sprintf("%.2f × of the raw pipe, %s", short.ratio, mebibytes(short.peak)),
		ratio:  fmt.Sprintf("%s, %+.1f MiB", times(long.ratio/short.ratio), more),
		target: "same ratio (± 10 %), ± 2 MiB", met: math.Abs(long.ratio/short.ratio-1) <= 0.1 && math.Abs(more) <= 2,
	})
	return b.format(shape, file, size)
}

// format compares `bus-agent format` of a file to a pipe with cat.
func (b *bench) format(shape corpus.Shape, file string, size int64) error {
	toCat := func(name string, args ...string) work[time.Duration] {
		return timed(func() error { return pipedToCat(file, exec.Command(name, args...)) })
	}
	costs, err := inTurn(b.rounds, 0, toCat("cat"), toCat(b.binary, "format", "--runtime", string(shape)))
	if err != nil {
		return err
	}
	cat, got := median(costs[0], itself), median(costs[1], itself)
	ratio := float64(cat) / float64(got)
	b.table.add(row{
		work:   fmt.Sprintf("format of a file of %s to a pipe", megabytes(size)),
		figure: perSecond(size, got), limit: "cat " + perSecond(size, cat), ratio: times(ratio),
		target: "stretch ≥ 0.50 ×", met: ratio >= 0.5,
	})
	return nil
}

// pipedToCat runs `c < file | cat > /dev/null`.
func pipedToCat(file string, c *exec.Cmd) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	out, pipe, err := os.Pipe()
	if err != nil {
		return err
	}
	reader := exec.Command("cat")
	reader.Stdin = out
	c.Stdin, c.Stdout, c.Stderr = in, pipe, os.Stderr
	if err := reader.Start(); err != nil {
		return err
	}
	out.Close()
	err = c.Run()
	pipe.Close()
	if waitErr := reader.Wait(); err == nil {
		err = waitErr
	}
	return err
}

func (j job) as(m mode) job {
	j.Mode = m
	return j
}
