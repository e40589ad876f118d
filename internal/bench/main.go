//go:build linux || darwin

// Command bench prints what bus-agent costs next to the limit it is measured
// against, both measured in turn in the same run. It never fails on a figure:
// machines differ.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/internal/bench/corpus"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == childArgument {
		if err := child(os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	quick := flag.Bool("quick", false, "measure less of everything: shows that it can be measured")
	only := flag.String("only", "", "measure only these of start, spawn, held, many, throughput, long, sessions, through, clients, clis, separated by commas")
	markdown := flag.Bool("markdown", false, "print the table as Markdown")
	page := flag.String("page", "", "also put the table into this Markdown file, between its markers")
	name := flag.String("table", "figures", "the name in the markers")
	b := &bench{plan: thorough}
	flag.StringVar(&b.binary, "bus-agent", "bin/bus-agent", "the binary to measure; bus-agent-mcp is next to it")
	flag.StringVar(&b.clis, "agents", ".cache/agents", "where npm has installed the CLIs")
	flag.StringVar(&b.acpClients, "acp-clients", ".cache/acp-clients", "where npm has installed acpx")
	flag.StringVar(&b.sdks, "sdks", ".cache/sdks", "where npm has installed the SDKs of vendors")
	flag.Parse()
	if *quick {
		b.plan = quickly
	}
	if err := b.run(*only, *markdown, *page, *name); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A plan is how much is measured.
type plan struct {
	lines     int // of a corpus
	longLines int // of a long one
	rounds    int // of what takes seconds
	starts    int // rounds of what takes milliseconds
	agents    int // at once
	held      int // rounds of an agent whose standard output is held
	cliRounds int // rounds of real CLIs
}

var (
	thorough = plan{lines: corpus.Lines, longLines: 5 * corpus.Lines, rounds: 3, starts: 500, agents: 1000, held: 20, cliRounds: 10}
	quickly  = plan{lines: corpus.Lines / 20, longLines: corpus.Lines / 5, rounds: 1, starts: 40, agents: 100, held: 3, cliRounds: 1}
)

// A bench is where measurements find what they need.
type bench struct {
	plan
	dir        string // temporary; also in the PATH of agents: holds bare and stub
	work       string // the agents' working directory
	self       string // this program
	binary     string // bus-agent
	clis       string // where npm has installed the CLIs
	acpClients string // and acpx
	sdks       string // and the SDKs of vendors
	table      *table
}

func (b *bench) run(only string, markdown bool, page, name string) (err error) {
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return err
	}
	if _, err := os.Stat(b.binary); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bus-agent-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	removeWhenStopped(dir)
	b.dir, b.work, b.self = dir, filepath.Join(dir, "work"), self
	if err := os.Mkdir(b.work, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"bare", "stub"} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), "./internal/bench/"+name)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("building %s: %w", name, err)
		}
	}
	measures, err := b.measures(only)
	if err != nil {
		return err
	}
	return b.all(measures, os.Stdout, markdown, page, name)
}

// removeWhenStopped removes dir, which can hold more than a gigabyte, when a
// signal ends this program.
func removeWhenStopped(dir string) {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stopped
		os.RemoveAll(dir)
		os.Exit(1)
	}()
}

// measures returns what is measured: all, or what a list names.
func (b *bench) measures(only string) ([]func() error, error) {
	names := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	var measures []func() error
	for _, m := range []struct {
		name string
		f    func() error
	}{
		{"start", b.startUp}, {"spawn", b.spawn}, {"held", b.heldOutput}, {"many", b.manyAgents}, {"throughput", b.throughput}, {"long", b.long}, {"sessions", b.sessions}, {"through", b.through}, {"clients", b.clients}, {"clis", b.runsOfCLIs},
	} {
		named := slices.Contains(names, m.name)
		if named || only == "" {
			measures = append(measures, m.f)
		}
		if named {
			names = slices.DeleteFunc(names, func(n string) bool { return n == m.name })
		}
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("nothing is called %s", strings.Join(names, ", "))
	}
	return measures, nil
}

// all measures row after row.
func (b *bench) all(measures []func() error, out io.Writer, markdown bool, page, name string) error {
	begun := time.Now()
	b.table = &table{out: out, markdown: markdown}
	b.table.head(fmt.Sprintf("%s, %s/%s, %d processors%s; median of %d, of starts %d, of CLIs %d; what is compared is measured in turn",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), load(), b.rounds, b.starts, b.cliRounds))
	for _, measure := range measures {
		if err := measure(); err != nil {
			return err
		}
	}
	if !markdown {
		fmt.Fprintf(out, "\nmeasured in %v\n", time.Since(begun).Round(time.Second))
	}
	if page == "" {
		return nil
	}
	return b.table.writePage(page, name)
}

// corpusFile makes a corpus in a file.
func (b *bench) corpusFile(name string, shape corpus.Shape, lines int) (path string, size int64, err error) {
	path = filepath.Join(b.dir, name+".ndjson")
	f, err := os.Create(path)
	if err != nil {
		return "", 0, err
	}
	size, err = corpus.Write(f, shape, lines, 1)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return path, size, err
}

// load returns how much else the machine has to do, if that is known.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return ", load before " + minute
}

// otherProcesses returns how busy the machine is: starting a process is dearer
// where there are many. It is negative if that is not known.
func otherProcesses() int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return -1
	}
	n := -1 // this one
	for _, e := range entries {
		if len(bytes.Trim([]byte(e.Name()), "0123456789")) == 0 {
			n++
		}
	}
	return n
}
