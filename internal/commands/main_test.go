package commands_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/commands"
	"github.com/busdk/bus-agent/registry"
)

// plain is a runtime whose output is its text.
func plain(id string) registry.Runtime {
	return registry.Runtime{
		ID: id, Name: "The " + id, Variants: []string{"local"}, Executables: []string{id}, InstallURL: "https://example.com/" + id,
		Run:     registry.Use{Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
		Decoder: formatters.Generic,
	}
}

// call runs the command line with two runtimes, one of which is installed.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "alpha"), []byte("not run"), 0o755); err != nil {
		t.Fatal(err)
	}
	var r registry.Registry
	for _, id := range []string{"beta", "alpha"} {
		if err := r.Register(plain(id)); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code = commands.Main(t.Context(), &commands.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Environ: []string{"PATH=" + bin}, Dir: t.TempDir(), Registry: &r, Version: "1.2.3",
	})
	return code, out.String(), errs.String()
}

// A program brings its own runtimes, streams and environment; nothing of the
// process is used.
func TestMainUsesItsEnvironmentOnly(t *testing.T) {
	t.Parallel()
	if code, out, errs := call(t, "detect"); code != 0 || out != "alpha\n" || errs != "" {
		t.Errorf("detect: %d, %q, %q", code, out, errs)
	}
	if code, out, _ := call(t, "-V"); code != 0 || out != "bus-agent 1.2.3\n" {
		t.Errorf("-V: %d, %q", code, out)
	}
	if _, out, _ := call(t, "help", "run"); !strings.Contains(out, "alpha, alpha:local, beta, beta:local") {
		t.Errorf("help does not name the runtimes: %s", out)
	}
	if code, _, errs := call(t, "run", "--text", "x", "--agent", "beta"); code != 1 || !strings.Contains(errs, "https://example.com/beta") {
		t.Errorf("missing runtime: %d, %q", code, errs)
	}
}

// The framework prints and exits by itself in these cases when it is let.
func TestFrameworkStaysSilent(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"bogus"}, {"--bogus"}, {"detect", "--bogus"}, {"detect", "stray"}, {"set", "bogus"}, {"run", "--text"}} {
		code, out, errs := call(t, args...)
		if code != 2 || out != "" || !strings.HasPrefix(errs, "bus-agent: ") {
			t.Errorf("%q: exit code %d, standard output %q, standard error %q", args, code, out, errs)
		}
	}
}

// Every command can be called for help, which has all of its parts.
func TestHelpIsComplete(t *testing.T) {
	t.Parallel()
	var visit func(path ...string)
	visit = func(path ...string) {
		code, out, errs := call(t, append([]string{"help"}, path...)...)
		if code != 0 || errs != "" {
			t.Errorf("help %q: exit code %d, %q", path, code, errs)
		}
		_, list, group := strings.Cut(out, "\nCommands:\n")
		for _, part := range []string{"\nUsage:\n", "\nExit codes:\n", "\n  2  usage error"} {
			if !strings.Contains(out, part) {
				t.Errorf("help %q has no %q", path, part)
			}
		}
		if !group && !strings.Contains(out, "\nExamples:\n") {
			t.Errorf("help %q has no examples", path)
		}
		for line := range strings.Lines(out) {
			if len(line) > 101 && !strings.HasPrefix(line, "  bus-agent ") {
				t.Errorf("help %q has a line of %d characters: %s", path, len(line), line)
			}
		}
		if !group {
			return
		}
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			if word := strings.TrimPrefix(line, "  "); word != "" && word[0] != ' ' {
				visit(append(path[:len(path):len(path)], strings.Fields(word)[0])...)
			}
		}
	}
	visit()
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestUnreadableInput(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"format"}, {"format", "--runtime", "alpha"}, {"render", "--template", "-"}, {"run", "--prompt", "-"}} {
		var r registry.Registry
		if err := r.Register(plain("alpha")); err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		code := commands.Main(t.Context(), &commands.Env{
			Args: args, Stdin: brokenReader{}, Stdout: io.Discard, Stderr: &errs, Dir: t.TempDir(), Registry: &r, Environ: []string{},
		})
		if got := errs.String(); code != 1 || got != "bus-agent: cannot read standard input: broken\n" {
			t.Errorf("%q: exit code %d, %q", args, code, got)
		}
	}
}

func ExampleMain() {
	var runtimes registry.Registry
	if err := runtimes.Register(plain("mine")); err != nil {
		fmt.Println(err)
	}
	code := commands.Main(context.Background(), &commands.Env{
		Args:     []string{"render", "--text", "Hello {{NAME}}.\n", "--var", "NAME=world"},
		Stdin:    strings.NewReader(""),
		Stdout:   os.Stdout,
		Stderr:   os.Stdout,
		Dir:      os.TempDir(),
		Registry: &runtimes,
	})
	fmt.Println("exit code", code)
	// Output:
	// Hello world.
	// exit code 0
}

// Scripts call the program in loops, so a command that answers at once must allocate
// little.
func TestStartIsSmall(t *testing.T) { // not parallel: it counts
	const most = 500 // allocations; the race detector costs some, and each folder above the workdir
	bin, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "alpha"), []byte("not run"), 0o755); err != nil {
		t.Fatal(err)
	}
	var r registry.Registry
	if err := r.Register(plain("alpha")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"detect"}, {"render", "--text", "Explain {{WHAT}}.", "--var", "WHAT=main.go"}} {
		got := math.Inf(1)
		for try := 0; try < 10 && got > most; try++ { // others allocate as well, such as the collector
			got = min(got, testing.AllocsPerRun(5, func() {
				code := commands.Main(t.Context(), &commands.Env{
					Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
					Environ: []string{"PATH=" + bin}, Dir: dir, Registry: &r,
				})
				if code != 0 {
					t.Errorf("%q: exit code %d", args, code)
				}
			}))
		}
		if got > most {
			t.Errorf("%q: %.0f allocations, at most %d are allowed", args, got, most)
		}
	}
}
