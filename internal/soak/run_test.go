package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Limits of the resident memory of bus-agent, in bytes.
const (
	memory     = 32 << 20 // with lines of up to 1 MiB
	memoryLong = 96 << 20 // with any longer
)

// preferences describe a runtime for each kind of output.
const preferences = `{"version": 1, "values": {
	"bus-agent.runtimes.plain": {"executables": ["stub"], "install_url": "https://example.com"},
	"bus-agent.runtimes.lines": {"executables": ["stub"], "install_url": "https://example.com", "output": "ndjson:codex"},
	"bus-agent.runtimes.other": {"executables": ["stub"], "install_url": "https://example.com", "output": "ndjson:claude"}
}}`

// A sandbox is where bus-agent runs with the stub.
type sandbox struct {
	t   *testing.T
	dir string
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	s := &sandbox{t, t.TempDir()}
	target := binary
	if target == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		target = self
	}
	for _, dir := range []string{"bin", "home", "work"} {
		if err := os.Mkdir(s.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, path := range map[string]string{"bin/bus-agent": target, "bin/stub": stub(t)} {
		if err := os.Symlink(path, s.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	s.write("preferences.json", []byte(preferences))
	return s
}

func (s *sandbox) path(name string) string { return filepath.Join(s.dir, name) }

func (s *sandbox) write(name string, text []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// command returns bus-agent with args, not started, with its memory measured.
func (s *sandbox) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), s.path("bin/stub"), append([]string{"measure", s.path("peak"), s.path("bin/bus-agent")}, args...)...)
	cmd.Dir, cmd.Env = s.path("work"), s.environ()
	return cmd
}

func (s *sandbox) environ() []string {
	return []string{
		"PATH=" + s.path("bin"), "HOME=" + s.path("home"), "TMPDIR=" + s.dir, "GORACE=atexit_sleep_ms=0",
		"BUS_PREFERENCES_PATH=" + s.path("preferences.json"),
	}
}

// peak returns the peak of the resident memory of the command that has ended.
func (s *sandbox) peak() int64 {
	s.t.Helper()
	text, err := os.ReadFile(s.path("peak"))
	if err != nil {
		s.t.Fatal(err)
	}
	peak, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return peak
}

// run runs the scenario in one way and checks all that arrives.
func (s *scenario) run(t *testing.T, way string) {
	box := newSandbox(t)
	raw := s.raw()
	play, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	box.write("play", play)

	announcement := "bus-agent: " + s.runtime + ", model auto\n"
	args := []string{"run", "--agent", s.runtime, "--text", "x"}
	stderr := newComparison(append(Output{{1, []Line{plain(announcement)}}}, s.text()...))
	var checked *comparison // of standard output
	var kept bytes.Buffer   // all of it, where it is small
	switch way {
	case ndjson:
		args, checked, stderr = append(args, "--output-format", way), newComparison(raw), newComparison(Output{{1, []Line{plain(announcement)}}})
	case events:
		args, checked, stderr = append(args, "--output-format", way), newComparison(s.events()), newComparison(Output{{1, []Line{plain(announcement)}}})
	case object:
		args = append(args, "--format", "json")
	case format:
		args, checked, stderr = []string{"format", "--runtime", s.runtime}, newComparison(s.text()), newComparison(nil)
	}
	var feed *exec.Cmd
	if way != format {
		args = append(args, "--", "--play="+box.path("play"))
	}
	cmd := box.command(args...)
	if way == format {
		feed = exec.CommandContext(t.Context(), stub(t), "--play="+box.path("play"))
		if cmd.Stdin, err = feed.StdoutPipe(); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Stdout, cmd.Stderr = &kept, stderr
	if checked != nil {
		cmd.Stdout = checked
	}
	begun := time.Now()
	if feed != nil {
		if err := feed.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\nstandard error after %d bytes", err, stderr.at)
	}
	took := time.Since(begun)
	if feed != nil {
		if err := feed.Wait(); err != nil {
			t.Error(err)
		}
	}
	if err := stderr.end(); err != nil {
		t.Errorf("standard error: %v", err)
	}
	if checked != nil {
		if err := checked.end(); err != nil {
			t.Errorf("standard output: %v", err)
		}
	} else if err := s.checkAnswer(way, kept.Bytes()); err != nil {
		t.Error(err)
	}
	s.report(t, way, raw.Size(), took, box.peak())
}

func (s *scenario) checkAnswer(way string, stdout []byte) error {
	answer := string(stdout)
	if way == object {
		var result struct {
			Text  string
			Kind  string
			Error string
		}
		if err := json.Unmarshal(stdout, &result); err != nil {
			return fmt.Errorf("%w in %.200q", err, stdout)
		}
		if result.Error != "" || result.Kind != "" {
			return fmt.Errorf("the run failed: %s", result.Error)
		}
		answer = result.Text
	}
	if err := s.answer(answer); err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	return nil
}

// report prints the figures of a run of the real program, and checks its memory.
func (s *scenario) report(t *testing.T, way string, size int64, took time.Duration, peak int64) {
	if binary == "" {
		return
	}
	limit := int64(memory)
	if s.long {
		limit = memoryLong
	}
	fmt.Fprintf(os.Stdout, "%-36s %-7s %9.1f MB %8.2f s %8.1f MB/s   peak %6.1f MiB (limit %d MiB)\n",
		s.name, way, float64(size)/1e6, took.Seconds(), float64(size)/1e6/took.Seconds(), float64(peak)/(1<<20), limit>>20)
	if peak > limit {
		t.Errorf("the peak of resident memory is %.1f MiB, over %d MiB", float64(peak)/(1<<20), limit>>20)
	}
}
