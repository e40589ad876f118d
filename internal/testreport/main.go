// Command testreport prints what "go test -json" writes to its standard input: a line for
// each package, the output of what failed, and at the end what was skipped and why. With
// -slowest N it also lists the N slowest packages and tests, and with -v it prints all
// output. It exits with 1 when a test failed or did not end, or none ran.
//
// Tools that others keep list slow tests only, not packages, and are built from more code
// than the tests of most packages here.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	slowest := flag.Int("slowest", 0, "list the `N` slowest packages and tests")
	verbose := flag.Bool("v", false, "print all output")
	flag.Parse()
	r := report{out: os.Stdout, verbose: *verbose, output: map[name]string{}, elapsed: map[name]float64{}, running: map[name]bool{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.summary(*slowest) {
		os.Exit(1)
	}
}

// event is a line of go test -json.
type event struct {
	Action     string
	ImportPath string // of what is built
	Package    string
	Test       string
	Elapsed    float64 // in seconds
	Output     string
}

// name names a test, or a package if Test is empty.
type name struct{ Package, Test string }

func (n name) String() string { return strings.TrimSpace(n.Package + " " + n.Test) }

type report struct {
	out             io.Writer
	verbose         bool
	output          map[name]string // of what has not passed
	elapsed         map[name]float64
	running         map[name]bool
	failed, skipped []name
	passed          int // tests
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF && line == "" {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		var e event
		if json.Unmarshal([]byte(line), &e) != nil { // of the go command itself
			fmt.Fprint(r.out, line)
			continue
		}
		r.add(e)
	}
}

func (r *report) add(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if r.verbose || e.Test == "" && isResult(e.Output) {
			fmt.Fprint(r.out, e.Output)
		} else {
			r.output[n] += e.Output
		}
	case "run":
		r.running[n] = true
	case "pass":
		r.elapsed[n] = e.Elapsed
		if e.Test != "" {
			r.passed++
			delete(r.running, n)
			delete(r.output, n)
			return
		}
		for test := range r.running { // the process ended with 0 before the tests
			if test.Package == e.Package {
				r.fail(test)
			}
		}
	case "skip":
		delete(r.running, n)
		if n.Test != "" { // else a package without tests
			r.skipped = append(r.skipped, n)
		}
	case "fail":
		r.elapsed[n] = e.Elapsed
		delete(r.running, n)
		r.fail(n)
	}
}

// isResult reports whether a line of a package is its result.
func isResult(line string) bool {
	return strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "FAIL\t")
}

// fail prints what a failed test wrote, or what a package wrote outside tests: a panic, or
// what was running at the time limit.
func (r *report) fail(n name) {
	r.failed = append(r.failed, n)
	fmt.Fprint(r.out, r.output[n])
	if n.Test != "" {
		return
	}
	for _, other := range slices.SortedFunc(maps.Keys(r.output), compare) {
		// A panic or the time limit ends tests without a result.
		if _, ended := r.elapsed[other]; other.Package == n.Package && !ended && !slices.Contains(r.skipped, other) {
			fmt.Fprint(r.out, r.output[other])
		}
	}
}

// summary prints the end of the report, and reports whether tests ran and all passed.
func (r *report) summary(slowest int) bool {
	if slowest > 0 {
		r.listSlowest("packages", slowest, func(n name) bool { return n.Test == "" })
		parents := map[name]bool{}
		for n := range r.elapsed {
			for i, c := range n.Test {
				if c == '/' {
					parents[name{n.Package, n.Test[:i]}] = true
				}
			}
		}
		r.listSlowest("tests", slowest, func(n name) bool { return n.Test != "" && !parents[n] })
	}
	slices.SortFunc(r.skipped, compare)
	for _, n := range r.skipped {
		fmt.Fprintf(r.out, "skipped: %s: %s\n", n, reason(r.output[n]))
	}
	failed := 0
	for _, n := range r.failed {
		if n.Test != "" {
			failed++
			fmt.Fprintf(r.out, "failed: %s\n", n)
		}
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, failed, len(r.skipped))
	if r.passed == 0 {
		fmt.Fprintln(r.out, "no test ran")
	}
	return len(r.failed) == 0 && r.passed > 0
}

func (r *report) listSlowest(what string, limit int, wanted func(name) bool) {
	var list []name
	for n := range r.elapsed {
		if wanted(n) {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b name) int {
		return cmp.Or(cmp.Compare(r.elapsed[b], r.elapsed[a]), compare(a, b))
	})
	fmt.Fprintf(r.out, "slowest %s, in seconds:\n", what)
	for _, n := range list[:min(limit, len(list))] {
		fmt.Fprintf(r.out, "%8.1f  %s\n", r.elapsed[n], n)
	}
}

// reason returns why a test was skipped, from what it wrote.
func reason(output string) string {
	for line := range strings.Lines(output) {
		if _, text, found := strings.Cut(line, ".go:"); found && strings.HasPrefix(line, "    ") {
			_, text, _ = strings.Cut(text, ": ")
			return strings.TrimSpace(text)
		}
	}
	return "no reason is given"
}

func compare(a, b name) int {
	return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Test, b.Test))
}
