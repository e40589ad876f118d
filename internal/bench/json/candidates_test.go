package json

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/minio/simdjson-go"

	"github.com/busdk/bus-agent/internal/bench/corpus"
)

// A reader reads what an event needs of a line into n, which stays valid until
// the next line. It is used by one goroutine.
type reader func(shape corpus.Shape, line []byte, n *needs) error

// candidates are the machineries compared, the limit first.
var candidates = []struct {
	name string
	new  func() reader
}{
	{"encoding/json", structs(stdjson.Unmarshal)},
	{"go-json-experiment/json (v2)", structs(unmarshalV2)},
	{"go-json-experiment/json, lenient", structs(unmarshalV2Lenient)},
	{"goccy/go-json", structs(unmarshalGoccy)},
	{"bytedance/sonic", structs(sonicFast.Unmarshal)},
	{"bytedance/sonic as std", structs(sonicStd.Unmarshal)},
	{"tidwall/gjson", newGJSON(false)},
	{"tidwall/gjson, validated", newGJSON(true)},
	{"buger/jsonparser", newJSONParser},
	{"valyala/fastjson", newFastJSON},
	{"go-faster/jx", newJX},
	{"minio/simdjson-go", newSimdJSON},
	{"bus-agent/jsonline", newJSONLine},
}

// runnable returns why a candidate cannot run here, or "".
func runnable(name string) error {
	if name == "minio/simdjson-go" && !simdjson.SupportedCPU() {
		return errors.New("it needs AVX2 and CLMUL")
	}
	return nil
}

// read is the reader with a panic as an error.
func read(r reader, shape corpus.Shape, line []byte, n *needs) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return r(shape, line, n)
}

var errPanic = errors.New("panic")

// recorded returns the lines that real agents printed.
func recorded(tb testing.TB, shape corpus.Shape) [][]byte {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "backends", string(shape), "testdata", "*.ndjson"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no transcripts of %s: %v", shape, err)
	}
	var lines [][]byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		lines = append(lines, split(data)...)
	}
	return lines
}

func split(data []byte) [][]byte {
	var lines [][]byte
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' {
			lines = append(lines, line)
		}
	}
	return lines
}

// All candidates must find the same, or their figures say nothing.
func TestCandidatesFindTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range candidates {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := runnable(c.name); err != nil {
				t.Skip(err)
			}
			limit, candidate := candidates[0].new(), c.new()
			for _, shape := range corpus.Shapes() {
				lines := append(recorded(t, shape), split(corpus.Bytes(shape, 60, 1))...)
				for _, line := range lines {
					var want, got needs
					if err := limit(shape, line, &want); err != nil {
						t.Fatalf("%v: %.200s", err, line)
					}
					if err := read(candidate, shape, bytes.Clone(line), &got); err != nil {
						t.Errorf("%v: %.200s", err, line)
						continue
					}
					if want, got := plain(t, want), plain(t, got); got != want {
						t.Errorf("(-encoding/json +%s) %.300s\n%s", c.name, line, cmp.Diff(want, got))
					}
				}
			}
		})
	}
}

// plain is n with what was located as texts.
func plain(t *testing.T, n needs) [10]string {
	t.Helper()
	output, err := n.Output.decoded()
	input, inputErr := n.Input.decoded()
	if err := errors.Join(err, inputErr); err != nil {
		t.Error(err)
	}
	return [...]string{n.Type, n.Kind, n.Session, n.Parent, n.Message, n.Tool, n.Name, n.Text, output, input}
}

func BenchmarkCorpus(b *testing.B) {
	for _, shape := range corpus.Shapes() {
		benchmark(b, shape, split(corpus.Bytes(shape, 5000, 1)))
	}
}

func BenchmarkRecorded(b *testing.B) {
	for _, shape := range corpus.Shapes() {
		benchmark(b, shape, recorded(b, shape))
	}
}

func benchmark(b *testing.B, shape corpus.Shape, lines [][]byte) {
	for _, c := range candidates {
		b.Run(string(shape)+"/"+c.name, func(b *testing.B) {
			if err := runnable(c.name); err != nil {
				b.Skip(err)
			}
			through(b, c.new(), shape, lines)
		})
	}
}

// The units of what is measured besides the time: allocations, and how much a
// second of processor time reads, that of the garbage collector included.
const (
	perLine   = "allocs/line"
	processor = "MB/cpu-s"
)

// through goes through lines as often as b says.
func through(b *testing.B, r reader, shape corpus.Shape, lines [][]byte) {
	var size int64
	for _, line := range lines {
		size += int64(len(line)) + 1
	}
	b.SetBytes(size)
	var n needs
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent := processorTime()
	for b.Loop() {
		for _, line := range lines {
			if err := r(shape, line, &n); err != nil {
				b.Fatal(err)
			}
		}
	}
	spent = processorTime() - spent
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(size)*float64(b.N)/1e6/spent.Seconds(), processor)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N)/float64(len(lines)), perLine)
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
