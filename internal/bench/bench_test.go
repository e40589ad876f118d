//go:build linux || darwin

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/internal/bench/corpus"
)

func TestInTurnMeasuresOneAfterTheOther(t *testing.T) {
	t.Parallel()
	var order string
	say := func(name string) work[int] {
		return func() (int, error) { order += name; return len(order), nil }
	}
	costs, err := inTurn(2, 1, say("a"), say("b"))
	if err != nil || order != "ababab" {
		t.Errorf("%q, %v", order, err)
	}
	if diff := cmp.Diff([][]int{{3, 5}, {4, 6}}, costs); diff != "" {
		t.Error(diff)
	}
	broken := errors.New("broken")
	if _, err := inTurn(1, 0, func() (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Error("a failed work counts")
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	if got := median([]time.Duration{9, 1, 5}, itself); got != 5 {
		t.Errorf("median of 9, 1 and 5 is %d", got)
	}
}

func TestTableReplacesThatOfThePage(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	pageBegin, pageEnd := marks("some")
	const others = "<!-- others: make bench-page -->\nkept\n<!-- end of others -->\n"
	if err := os.WriteFile(page, []byte("before\n"+others+pageBegin+"old\n"+pageEnd+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	table := &table{out: new(bytes.Buffer)}
	table.head("a machine")
	table.add(row{work: "w", figure: "1", limit: "2", ratio: "0.5", target: "≥ 1"})
	table.add(row{work: "x", figure: "1", target: "≥ 1", met: true})
	table.add(row{work: "y", figure: "1", met: true})
	if err := table.writePage(page, "some"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + others + pageBegin + "a machine.\n\n| work | figure | limit | compared | target | met |\n| --- | --- | --- | --- | --- | --- |\n" +
		"| w | 1 | 2 | 0.5 | ≥ 1 | no |\n| x | 1 |  |  | ≥ 1 | yes |\n| y | 1 |  |  |  |  |\n" + pageEnd + "after\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(page, []byte("no markers\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if table.writePage(page, "some") == nil {
		t.Error("a page without markers was written")
	}
}

func TestHalfwayIsReachedOnce(t *testing.T) {
	t.Parallel()
	n := 0
	h := &halfway{left: 4, reached: func() { n++ }}
	for _, want := range []int{0, 1, 1} {
		if _, err := h.Write([]byte("ab")); err != nil || n != want {
			t.Errorf("reached %d times, want %d; %v", n, want, err)
		}
	}
}

// The limit of the decoders must read what they read.
func TestUnmarshalReadsEveryLine(t *testing.T) {
	t.Parallel()
	for _, shape := range corpus.Shapes() {
		line := unmarshalLine(shape)
		for text := range bytes.Lines(corpus.Bytes(shape, 300, 1)) {
			if err := line(text); err != nil {
				t.Errorf("%s: %v: %.100s", shape, err, text)
			}
		}
	}
}

func TestOnlyWhatIsNamedIsMeasured(t *testing.T) {
	t.Parallel()
	for only, want := range map[string]int{"": 10, "spawn": 1, "long,start": 2} {
		if measures, err := new(bench).measures(only); err != nil || len(measures) != want {
			t.Errorf("%q: %d measures, %v; want %d", only, len(measures), err, want)
		}
	}
	if _, err := new(bench).measures("spawn,other"); err == nil {
		t.Error("what does not exist was measured")
	}
}

// Without the CLIs the table says that their lines are missing.
func TestMissingCLIsAreNamed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := &bench{clis: t.TempDir(), acpClients: t.TempDir(), sdks: t.TempDir(), table: &table{out: &out}}
	for name, measure := range map[string]func() error{"make agents acp-clients": b.clients, "make agents": b.runsOfCLIs} {
		out.Reset()
		if err := measure(); err != nil || !bytes.Contains(out.Bytes(), []byte("not measured: "+name)) {
			t.Errorf("%v, %s", err, out.Bytes())
		}
	}
}
