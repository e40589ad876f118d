package backendtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
)

var update = flag.Bool("update", false, "write the golden files")

// Decode returns the events of a whole output, which share no memory.
func Decode(t testing.TB, rt registry.Runtime, output []byte) []agent.Event {
	t.Helper()
	var events []agent.Event
	s := formatters.NewStream(rt.NewDecoder(), func(e *agent.Event) error {
		events = append(events, *e.Clone())
		return nil
	})
	if _, err := s.Write(output); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return events
}

// Transcripts compares what rt makes of each recorded output dir/*.ndjson with
// two files next to it: NAME.events, one event in JSON a line, and NAME.txt, the
// readable text. The flag -update writes them. A line that the decoder does not
// know fails the test, since a CLI really wrote it.
func Transcripts(t *testing.T, rt registry.Runtime, dir string) {
	t.Helper()
	for file, output := range Recorded(t, dir) {
		base := strings.TrimSuffix(file, ".ndjson")
		t.Run(filepath.Base(base), func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			for _, e := range Decode(t, rt, output) {
				if e.Kind == agent.KindRaw {
					t.Errorf("not understood: %.200s", e.Text)
				}
				line, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				lines.Write(append(line, '\n'))
			}
			golden(t, base+".events", lines.Bytes())
			text, err := formatters.Format(rt, output, nil)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, base+".txt", []byte(text))
			checkSkimming(t, rt, output)
		})
	}
}

// skimmable are the kinds of events that do not matter to the result of a run that
// has not reported one.
var skimmable = []agent.Kind{agent.KindThinking, agent.KindToolResult, agent.KindFileChange, agent.KindHeartbeat}

// checkSkimming holds a decoder that is a formatters.Skimmer to its contract: what
// it skims does not matter, and it decodes the rest as if it had skimmed nothing.
func checkSkimming(t *testing.T, rt registry.Runtime, output []byte) {
	t.Helper()
	skimming, ok := rt.NewDecoder().(formatters.Skimmer)
	if !ok {
		return
	}
	all := rt.NewDecoder()
	for line := range bytes.Lines(output) {
		line = bytes.TrimRight(line, "\r\n")
		want := eventLines(all.Decode(line, nil))
		kind, skimmed := agent.Kind(""), false
		if bytes.HasSuffix(line, []byte("}")) {
			kind, skimmed = skimming.Skim(line)
			if head := line[:min(len(line), formatters.SkimSize)]; skimmed {
				if headKind, ok := skimming.Skim(head); !ok || headKind != kind {
					t.Errorf("%.200q is skimmed as a %s, but by its head as a %s", line, kind, headKind)
				}
			}
		}
		if !skimmed {
			if got := eventLines(skimming.Decode(line, nil)); got != want {
				t.Errorf("after skimming, %.200q is decoded as\n%s\nnot as\n%s", line, got, want)
			}
			continue
		}
		found := false
		for _, e := range rt.NewDecoder().Decode(line, nil) {
			found = found || e.Kind == kind
			if !slices.Contains(skimmable, e.Kind) {
				t.Errorf("%.200q is skimmed, but it is a %s", line, e.Kind)
			}
		}
		if !found {
			t.Errorf("%.200q is skimmed as a %s, which it is not", line, kind)
		}
	}
}

func eventLines(events []agent.Event) string {
	var lines []byte
	for i := range events {
		lines = append(events[i].AppendJSON(lines), '\n')
	}
	return string(lines)
}

// FuzzDecoder tests the contract of the decoder of rt, beginning with the lines of
// dir/*.ndjson and with seeds: no input makes it panic, even if repeated, a line
// that is not blank is never lost, and every event has a kind and a JSON form.
// Recognize must not panic either.
func FuzzDecoder(f *testing.F, rt registry.Runtime, dir string, seeds ...string) {
	f.Helper()
	for _, output := range Recorded(f, dir) {
		for line := range bytes.Lines(output) {
			f.Add(bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		d := rt.NewDecoder()
		for range 2 {
			events := d.Decode(line, nil)
			if len(events) == 0 && len(bytes.TrimSpace(line)) > 0 {
				t.Errorf("%q was lost", line)
			}
			for _, e := range events {
				if e.Kind == "" {
					t.Errorf("%q gave an event without a kind", line)
				}
				if _, err := json.Marshal(e); err != nil {
					t.Errorf("%q gave an event without a JSON form: %v", line, err)
				}
			}
		}
		if rt.Recognize != nil {
			rt.Recognize(line)
		}
		if !bytes.Equal(line, before) {
			t.Errorf("a decoder must not change its input %q", before)
		}
	})
}

// BenchmarkDecoder measures the decoding of all of dir/*.ndjson, from bytes to
// delivered events.
func BenchmarkDecoder(b *testing.B, rt registry.Runtime, dir string) {
	b.Helper()
	var output []byte
	for _, recorded := range Recorded(b, dir) {
		output = append(output, recorded...)
	}
	b.SetBytes(int64(len(output)))
	for b.Loop() {
		s := formatters.NewStream(rt.NewDecoder(), func(*agent.Event) error { return nil })
		if _, err := s.Write(output); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// Recorded returns the content of each file dir/*.ndjson by its name. It fails
// the test when there is none.
func Recorded(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded output in %s: %v", dir, err)
	}
	outputs := make(map[string][]byte, len(files))
	for _, file := range files {
		outputs[file] = read(t, file)
	}
	return outputs
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, name); !bytes.Equal(want, got) {
		t.Errorf("%s: %s", name, difference(want, got))
	}
}

// difference returns the first lines in which two texts differ. A package for it
// would cost every start of the fake agent more than all else in it.
func difference(want, got []byte) string {
	for n := 1; ; n++ {
		wanted, restWanted, more := bytes.Cut(want, []byte("\n"))
		found, restFound, moreFound := bytes.Cut(got, []byte("\n"))
		if !bytes.Equal(wanted, found) || !more && !moreFound {
			return fmt.Sprintf("line %d (-want +got):\n-%s\n+%s", n, wanted, found)
		}
		want, got = restWanted, restFound
	}
}
