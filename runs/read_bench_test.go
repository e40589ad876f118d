package runs

import (
	"fmt"
	"testing"
)

// BenchmarkList lists runs that each have a separate task, the slowest case. The time
// per run must not grow with their number.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{2_000, 10_000} {
		if testing.Short() && n > 2_000 {
			continue
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			store := &Records{Root: b.TempDir()}
			for i := range n {
				put(b, store.Root, exampleInfo(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				list, problems, err := store.List(b.Context(), Filter{})
				if err != nil || len(problems) > 0 || len(list) != n {
					b.Fatal(len(list), problems, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/run")
		})
	}
}

// BenchmarkParseInfo reads one record, without the YAML library.
func BenchmarkParseInfo(b *testing.B) {
	info := exampleInfo(0)
	text, err := marshalInfo(&info)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseInfo(text); err != nil {
			b.Fatal(err)
		}
	}
}
