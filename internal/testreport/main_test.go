package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	t.Parallel()
	const stream = `go: downloading a module
{"Action":"output","Package":"a","Test":"TestSlow","Output":"=== RUN   TestSlow\n"}
{"Action":"pass","Package":"a","Test":"TestSlow/part","Elapsed":2.5}
{"Action":"pass","Package":"a","Test":"TestSlow","Elapsed":2.5}
{"Action":"output","Package":"a","Test":"TestTool","Output":"    a_test.go:7: no tool is installed\n"}
{"Action":"skip","Package":"a","Test":"TestTool","Elapsed":0}
{"Action":"output","Package":"a","Output":"PASS\n"}
{"Action":"output","Package":"a","Output":"ok  \ta\t2.6s\n"}
{"Action":"pass","Package":"a","Elapsed":2.6}
{"Action":"output","Package":"b","Test":"TestBad","Output":"    b_test.go:3: bad\n"}
{"Action":"fail","Package":"b","Test":"TestBad","Elapsed":0.1}
{"Action":"output","Package":"b","Test":"TestEnded","Output":"panic: timed out\n"}
{"Action":"output","Package":"b","Output":"FAIL\tb\t0.2s\n"}
{"Action":"fail","Package":"b","Elapsed":0.2}
`
	for _, c := range []struct {
		name, stream, want string
		slowest            int
		ok                 bool
	}{
		{"failed", stream, `go: downloading a module
ok  	a	2.6s
    b_test.go:3: bad
FAIL	b	0.2s
panic: timed out
slowest packages, in seconds:
     2.6  a
slowest tests, in seconds:
     2.5  a TestSlow/part
skipped: a TestTool: no tool is installed
failed: b TestBad
2 passed, 1 failed, 1 skipped
`, 1, false},
		{"passed", `{"Action":"pass","Package":"a","Test":"Test"}` + "\n", "1 passed, 0 failed, 0 skipped\n", 0, true},
		{"exited", `{"Action":"run","Package":"a","Test":"TestExits"}
{"Action":"run","Package":"a","Test":"TestPasses"}
{"Action":"pass","Package":"a","Test":"TestPasses"}
{"Action":"pass","Package":"a"}
`, "failed: a TestExits\n1 passed, 1 failed, 0 skipped\n", 0, false},
		{"empty", "", "0 passed, 0 failed, 0 skipped\nno test ran\n", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			r := report{out: &out, output: map[name]string{}, elapsed: map[name]float64{}, running: map[name]bool{}}
			if err := r.read(strings.NewReader(c.stream)); err != nil {
				t.Fatal(err)
			}
			if ok := r.summary(c.slowest); ok != c.ok {
				t.Errorf("ok %t", ok)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
