package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/internal/testwait"
)

// agentName is the agent the Go tests install. Which one does not matter.
const agentName = "codex"

func TestSignalsStopTheAgent(t *testing.T) {
	t.Parallel()
	stopping := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	for _, sig := range stopping {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, agentName, "touch up\nhang\ntouch alive\n")
			var stdout, stderr bytes.Buffer
			cmd := s.command("run", "--text", "x")
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			s.start(cmd)
			s.await("work/up")
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, cmd.Wait()); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if want := "bus-agent: " + agentName + ": the run was stopped: " + sig.String() + "\n"; !strings.HasSuffix(stderr.String(), want) {
				t.Errorf("standard error is %q, want it to end with %q", stderr.String(), want)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output is %q, want none", stdout.String())
			}
			if _, err := os.Stat(s.path("work/alive")); err == nil {
				t.Error("the agent went on after the signal")
			}
		})
	}
}

// A read of a terminal or pipe cannot be interrupted, yet a signal must end it.
func TestSignalsStopReading(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "--prompt", "-"}, {"render", "--template", "-"}, {"format"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, agentName, "")
			var stderr bytes.Buffer
			cmd := s.command(args...)
			cmd.Stderr = &stderr
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			cmd.Stdin = r
			s.start(cmd)
			r.Close()
			// It takes what is written only when it reads; a full pipe that
			// empties shows that it does.
			fill := bytes.Repeat([]byte("x\n"), 1<<20)
			if err := w.SetWriteDeadline(time.Now().Add(testwait.Limit)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(fill); err != nil {
				t.Fatalf("standard input is not read: %v", err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, cmd.Wait()); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if got := stderr.String(); got != "bus-agent: stopped: terminated\n" {
				t.Errorf("standard error is %q", got)
			}
		})
	}
}

// TestIgnoredSignalsStayIgnored is nohup.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	nohup, err := exec.LookPath("nohup")
	if err != nil {
		testneed.Lacking(t, "no nohup: %v", err)
	}
	s := newSandbox(t, agentName, "touch up\nwait go\nout {\"type\":\"turn.completed\",\"usage\":{}}\n")
	cmd := s.command("run", "--text", "x")
	cmd.Args = append([]string{nohup}, cmd.Args...)
	cmd.Args[1] = cmd.Path
	cmd.Path = nohup
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &stderr
	s.start(cmd)
	s.await("work/up")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path("work/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d, want 0; standard error:\n%s", code, stderr.String())
	}
}

// A reader that goes away ends the run silently.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	const started = `out {"type":"thread.started","thread_id":"t"}` + "\n"
	const endless = started + `repeat 1000000 {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"more"}}` + "\ntouch finished\n"
	for name, test := range map[string]struct {
		args   []string
		stderr bool // goes to the same pipe
	}{
		"ndjson":               {[]string{"run", "--text", "x", "--output-format", "ndjson"}, false},
		"events":               {[]string{"run", "--text", "x", "--output-format", "events"}, false},
		"text with its errors": {[]string{"run", "--text", "x"}, true},
		"format":               {[]string{"format", "--runtime", agentName}, false},
		"help":                 {[]string{"--help"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, agentName, endless)
			cmd := s.command(test.args...)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &stderr
			if test.stderr {
				cmd.Stderr = w
			}
			switch name {
			case "format":
				cmd.Stdin = strings.NewReader(strings.Repeat(`{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"more"}}`+"\n", 100000))
			case "help":
				// Standard output is not read: the text fits the pipe.
				r.Close()
			}
			s.start(cmd)
			w.Close()
			if name != "help" {
				if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				r.Close()
			}
			// Wait also returns the error of writing standard input.
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("exit code %d (%v), want 1", code, cmd.ProcessState)
			}
			if got := stderr.String(); got != "" && got != "bus-agent: "+agentName+", model auto\n" {
				t.Errorf("standard error is %q", got)
			}
			if _, err := os.Stat(s.path("work/finished")); err == nil {
				t.Error("the agent ran to its end")
			}
		})
	}
}

// Lines reach the reader when they are written, not when the agent ends.
func TestLinesAreNotHeldBack(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"ndjson", "events"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, agentName, `out {"type":"thread.started","thread_id":"t"}`+"\nwait go\n"+`out {"type":"turn.completed","usage":{}}`+"\n")
			cmd := s.command("run", "--text", "x", "--output-format", format)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			s.start(cmd)
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"t"`) {
				t.Errorf("first line is %q, error %v", line, err)
			}
			if err := os.WriteFile(s.path("work/go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, out); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, cmd.Wait()); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

// TestFormatStreams feeds a line and waits for its text before the next.
func TestFormatStreams(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, agentName, "")
	cmd := s.command("format")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.start(cmd)
	lines := bufio.NewReader(out)
	for _, step := range []struct{ in, out string }{
		{"before\n", "before"},
		{`{"type":"thread.started","thread_id":"t"}` + "\n" + `{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"first"}}` + "\n", "first"},
		{`{"type":"item.completed","item":{"id":"b","type":"agent_message","text":"second"}}` + "\n", "second"},
	} {
		if _, err := io.WriteString(in, step.in); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("waiting for %q: %v", step.out, err)
			}
			if strings.Contains(line, step.out) {
				break
			}
		}
	}
	in.Close()
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// A standard output that cannot be written is a failure with a reason.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		testneed.Lacking(t, "no /dev/full: %v", err)
	}
	defer full.Close()
	s := newSandbox(t, agentName, "")
	var stderr bytes.Buffer
	cmd := s.command("detect")
	cmd.Stdout, cmd.Stderr = full, &stderr
	if code := exitCode(t, cmd.Run()); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if got := stderr.String(); got != "bus-agent: cannot write standard output: no space left on device\n" {
		t.Errorf("standard error is %q", got)
	}
}

func (s *sandbox) start(cmd *exec.Cmd) {
	s.t.Helper()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sandbox) await(name string) {
	s.t.Helper()
	if !testwait.Exists(s.path(name)) {
		s.t.Fatalf("%s does not appear", name)
	}
}

// Commands that wait for the version of a CLI end at a signal and say so.
func TestSignalsStopLookingForVersions(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"doctor"}, {"detect", "--verbose"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, agentName, "touch $HOME/up\nhang\n")
			var stderr bytes.Buffer
			cmd := s.command(args...)
			cmd.Stderr = &stderr
			s.start(cmd)
			s.await("home/up")
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, cmd.Wait()); code != 1 || stderr.String() != "bus-agent: stopped: terminated\n" {
				t.Errorf("exit code %d, standard error is %q", code, stderr.String())
			}
		})
	}
}
