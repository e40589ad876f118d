package all_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// FuzzOutput checks for every runtime that the events of an output do not depend
// on where it is cut, nor on what happens to the memory it came in.
func FuzzOutput(f *testing.F) {
	runtimes := registry.Default().All()
	for i, rt := range runtimes {
		for _, output := range recordings(f, rt) {
			if len(output) > 8<<10 {
				output = output[:8<<10]
			}
			f.Add(output, uint16(len(output)/3), uint16(len(output)/2), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, output []byte, first, second uint16, which uint8) {
		rt := runtimes[int(which)%len(runtimes)]
		events := func(pieces ...[]byte) (all []string) {
			s := formatters.NewStream(rt.NewDecoder(), func(e *agent.Event) error {
				text, err := json.Marshal(e)
				all = append(all, string(text))
				return err
			})
			for _, p := range pieces {
				p = append([]byte{}, p...)
				if _, err := s.Write(p); err != nil {
					t.Fatal(err)
				}
				for i := range p {
					p[i] = '!'
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return all
		}
		a := min(int(first), len(output))
		b := a + min(int(second), len(output)-a)
		if diff := cmp.Diff(events(output), events(output[:a], output[a:b], output[b:])); diff != "" {
			t.Fatalf("%s: the cuts at %d and %d decide (-whole +cut):\n%s", rt.ID, a, b, diff)
		}
	})
}

// Runtimes that are described in JSON have one of two decoders: that of plain
// text and another runtime's.

func FuzzDescribedText(f *testing.F) { fuzzDescribed(f, "text") }
func FuzzDescribedJSON(f *testing.F) { fuzzDescribed(f, "ndjson:claude") }

func fuzzDescribed(f *testing.F, output string) {
	f.Helper()
	rt, err := described.Runtime("mine", []byte(`{"name":"Mine","executables":["mine"],"install_url":"https://example.com/mine","args":[],"output":"`+output+`"}`), registry.Default())
	if err != nil {
		f.Fatal(err)
	}
	backendtest.FuzzDecoder(f, rt, filepath.Join("..", "claude", "testdata"))
}
