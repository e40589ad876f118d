package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// program returns a command that runs the program against w.
func program(t *testing.T, w *testServer, prompt string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = []string{runMain + "=1", "GORACE=atexit_sleep_ms=0", "XAI_API_KEY=" + token, "XAI_BASE_URL=" + w.URL}
	c.Stdin = strings.NewReader(prompt)
	return c
}

// exitCode returns the code a command exited with.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func TestProgram(t *testing.T) {
	t.Parallel()
	prompt := "-x --help\n/quit ü工🙂 \x00 <b> & \"q\"\r\n" + strings.Repeat("long ", 300_000)
	w := serve(t, stream(delta("hi"), stop, "[DONE]"), refuse(401, `{"error":"no"}`))
	for _, c := range []struct {
		name, prompt string
		args         []string
		code         int
		out, errOut  string
	}{
		{"an answer", prompt, []string{"--provider=xai"}, exitSuccess, `{"type":"result","text":"hi","finish_reason":"stop"}` + "\n", ""},
		{"a failure", "hi", []string{"--provider=xai"}, exitFailure, `{"type":"result","error":"the server returned 401 Unauthorized: no","failure":"authentication","status":401}` + "\n", ""},
		{"no prompt", " \n", []string{"--provider=xai"}, exitUsage, "", "contains no prompt; nothing was sent"},
		{"a wrong flag", "hi", []string{"--provider=x"}, exitUsage, "", "unknown provider"},
		{"help", "", []string{"--help"}, exitSuccess, "XAI_API_KEY", ""},
		{"version", "", []string{"--version"}, exitSuccess, "bus-agent-rest 0.0.0-devel\n", ""},
	} {
		cmd := program(t, w, c.prompt, c.args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if code := exitCode(t, err); code != c.code || !strings.Contains(string(out), c.out) || c.out == "" && len(out) > 0 ||
			!strings.Contains(stderr.String(), c.errOut) || c.errOut == "" && stderr.Len() > 0 {
			t.Errorf("%s: exit code %d\n%s\n%s", c.name, code, out, stderr.String())
		}
	}
	if w.count() != 2 {
		t.Errorf("the server got %d requests", w.count())
	}
	var sent struct{ Messages []message }
	decode(t, w.bodies[0], &sent)
	if len(sent.Messages) != 1 || sent.Messages[0].Content != prompt {
		t.Errorf("the server got %d messages, %.80q", len(sent.Messages), sent.Messages[0].Content)
	}
}

// A signal ends the program while it waits for a server and while standard output
// is blocked.
func TestSignal(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		signal syscall.Signal
		event  string // before it hangs
		unread bool
	}{
		"SIGTERM in an answer":            {syscall.SIGTERM, delta("hal"), false},
		"SIGINT in an answer":             {syscall.SIGINT, delta("hal"), false},
		"SIGTERM while output is blocked": {syscall.SIGTERM, delta(full), true},
		"SIGTERM before an answer":        {syscall.SIGTERM, "", false},
		"SIGTERM between attempts":        {syscall.SIGTERM, "503", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 100)
			w := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if c.event == "503" {
					refuse(503, "", "Retry-After", "100")(w, r)
					asked <- struct{}{}
					return
				}
				if c.event != "" {
					stream(c.event)(w, r)
					w.(http.Flusher).Flush()
				}
				asked <- struct{}{}
				<-r.Context().Done()
			})
			cmd := program(t, w, "hi", "--provider=xai")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-asked
			if c.unread {
				// The rest does not fit into the pipe.
				if _, err := io.ReadFull(out, make([]byte, 1000)); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			var text []byte
			if !c.unread {
				if text, err = io.ReadAll(out); err != nil {
					t.Fatal(err)
				}
			}
			state, err := cmd.Process.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if state.ExitCode() != exitFailure || !c.unread && !strings.Contains(string(text), `"error":"stopped by a signal`) {
				t.Errorf("%v\n%.300s", state, text)
			}
		})
	}
}

func TestWriteErrorFails(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) && runtime.GOOS != "linux" {
		t.Skip("this system has no /dev/full")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	w := serve(t, stream(delta("hi"), stop))
	cmd := program(t, w, "hi", "--provider=xai")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	if code := exitCode(t, cmd.Run()); code != exitFailure || !strings.Contains(stderr.String(), "cannot write standard output") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}
