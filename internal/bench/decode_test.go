//go:build linux || darwin

package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/bench/corpus"
)

// benchmarkLines is how much of a corpus a benchmark goes through at a time.
const benchmarkLines = 5000

// perShape benchmarks what prepare returns for a corpus of each shape.
func perShape(b *testing.B, prepare func(b *testing.B, shape corpus.Shape, data []byte) func()) {
	for _, shape := range corpus.Shapes() {
		b.Run(string(shape), func(b *testing.B) {
			data := corpus.Bytes(shape, benchmarkLines, 1)
			once := prepare(b, shape, data)
			b.SetBytes(int64(len(data)))
			before := allocations()
			for b.Loop() {
				once()
			}
			b.ReportMetric(float64(allocations()-before)/float64(b.N)/benchmarkLines, "allocs/line")
		})
	}
}

// decode passes the events of data to take.
func decode(b testing.TB, shape corpus.Shape, data []byte, take func(*agent.Event)) {
	s := formatters.NewStream(runtimeOf(shape).NewDecoder(), func(e *agent.Event) error {
		if e.Kind == agent.KindRaw {
			b.Fatalf("not known: %.100s", e.Text)
		}
		take(e)
		return nil
	})
	for chunk := range slices.Chunk(data, readSize) {
		if _, err := s.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDecode decodes and delivers.
func BenchmarkDecode(b *testing.B) {
	perShape(b, func(b *testing.B, shape corpus.Shape, data []byte) func() {
		return func() { decode(b, shape, data, func(*agent.Event) {}) }
	})
}

// BenchmarkDecodeAndRender decodes, delivers and renders.
func BenchmarkDecodeAndRender(b *testing.B) {
	perShape(b, func(b *testing.B, shape corpus.Shape, data []byte) func() {
		var text []byte
		return func() {
			show := runtimeOf(shape).NewFormatter()
			decode(b, shape, data, func(e *agent.Event) { text = show.Append(text[:0], e) })
		}
	})
}

// BenchmarkRender renders events that were decoded before.
func BenchmarkRender(b *testing.B) {
	perShape(b, func(b *testing.B, shape corpus.Shape, data []byte) func() {
		var events []*agent.Event
		decode(b, shape, data, func(e *agent.Event) { events = append(events, e.Clone()) })
		var text []byte
		return func() {
			show := runtimeOf(shape).NewFormatter()
			for _, e := range events {
				text = show.Append(text[:0], e)
			}
		}
	})
}

// BenchmarkUnmarshal is the limit: encoding/json, no events.
func BenchmarkUnmarshal(b *testing.B) {
	perShape(b, func(b *testing.B, shape corpus.Shape, data []byte) func() {
		line := unmarshalLine(shape)
		return func() {
			for text := range bytes.Lines(data) {
				if err := line(text); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
