package corpus_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/backends/codex"
	"github.com/busdk/bus-agent/backends/gemini"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/bench/corpus"
	"github.com/busdk/bus-agent/registry"
)

var runtimes = map[corpus.Shape]registry.Runtime{
	corpus.Claude: claude.Runtime(), corpus.Codex: codex.Runtime(), corpus.Gemini: gemini.Runtime(),
}

func TestEqualArgumentsGiveEqualBytes(t *testing.T) {
	t.Parallel()
	for shape, want := range map[corpus.Shape]string{
		corpus.Claude: "afc9b6a48fd0a7ac", corpus.Codex: "12d0ec3c50cc9a90", corpus.Gemini: "e61528ad1cb82c47",
	} {
		run := corpus.Bytes(shape, 500, 1)
		if got := fmt.Sprintf("%x", sha256.Sum256(run))[:16]; got != want {
			t.Errorf("%s: the bytes of seed 1 are %s, no longer %s: figures cannot be compared with earlier ones", shape, got, want)
		}
		if bytes.Equal(run, corpus.Bytes(shape, 500, 2)) {
			t.Errorf("%s: seeds 1 and 2 give equal bytes", shape)
		}
	}
}

func TestRunsHaveTheLinesAndTheSizeTheySay(t *testing.T) {
	t.Parallel()
	for _, shape := range corpus.Shapes() {
		const lines = corpus.Lines / 25
		run := corpus.Bytes(shape, lines, 1)
		if n := bytes.Count(run, []byte("\n")); n != lines || run[len(run)-1] != '\n' {
			t.Errorf("%s: %d lines, want %d", shape, n, lines)
		}
		if size := len(run) * 25; size < 160e6 || size > 240e6 {
			t.Errorf("%s: %d lines would be %d bytes, want about 200 MB", shape, corpus.Lines, size)
		}
		var sizes []int
		for line := range bytes.Lines(run) {
			if len(sizes) < 1000 && !json.Valid(line) {
				t.Fatalf("%s: no JSON: %.200s", shape, line)
			}
			sizes = append(sizes, len(line))
		}
		slices.Sort(sizes)
		if median := sizes[lines/2]; median > 600 {
			t.Errorf("%s: half of the lines have more than %d bytes; most are small in real runs", shape, median)
		}
	}
}

func TestTheRealDecodersKnowEveryLine(t *testing.T) {
	t.Parallel()
	for shape, runtime := range runtimes {
		kinds := map[agent.Kind]int{}
		var last agent.Event
		s := formatters.NewStream(runtime.NewDecoder(), func(e *agent.Event) error {
			if e.Kind == agent.KindRaw {
				return fmt.Errorf("not known: %.300s", e.Text)
			}
			kinds[e.Kind]++
			last = *e.Clone()
			return nil
		})
		_, err := s.Write(corpus.Bytes(shape, 1000, 3))
		if err = errors.Join(err, s.Close()); err != nil {
			t.Errorf("%s: %v", shape, err)
		}
		if last.Kind != agent.KindResult || last.Failed {
			t.Errorf("%s: ends with %s, failed %t", shape, last.Kind, last.Failed)
		}
		for _, kind := range []agent.Kind{agent.KindSessionStarted, agent.KindText, agent.KindToolCall, agent.KindToolResult, agent.KindUsage, agent.KindHeartbeat} {
			if kinds[kind] == 0 {
				t.Errorf("%s: no event of kind %s", shape, kind)
			}
		}
	}
}

func TestWriteRefusesWhatItCannotMake(t *testing.T) {
	t.Parallel()
	if _, err := corpus.Write(io.Discard, "other", 10, 1); err == nil {
		t.Error("an unknown shape was made")
	}
	if _, err := corpus.Write(io.Discard, corpus.Codex, 1, 1); err == nil {
		t.Error("a run of one line was made")
	}
	broken := errors.New("broken")
	if _, err := corpus.Write(writer{broken}, corpus.Codex, 10, 1); !errors.Is(err, broken) {
		t.Errorf("the error of the writer is lost: %v", err)
	}
}

type writer struct{ err error }

func (w writer) Write([]byte) (int, error) { return 0, w.err }
