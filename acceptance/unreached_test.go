//go:build acceptance

package acceptance

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/modeltest"
)

// A run or a session whose model cannot be reached fails, or says so on standard error,
// within 30 seconds.
func TestUnreachableModelIsReported(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + closed.Addr().String()
	closed.Close()
	silent := "http://" + silentServer(t).String()
	for name, setup := range map[string]setupFunc{"codex": newCodex, "claude": newClaude, "gemini": newGemini} {
		for kind, url := range map[string]string{"connection refused": refused, "unknown host": "http://host.invalid", "no answer": silent} {
			unreached := func(t *testing.T) (w *fixture, args []string) {
				w = setup(t, modeltest.Replies(), nil)
				w.env = append(w.env, "ANTHROPIC_BASE_URL="+url, "GOOGLE_GEMINI_BASE_URL="+url)
				args = append([]string{"--agent", w.agent, "--model", w.modelID}, w.codexArgs()...)
				for i, arg := range args {
					args[i] = strings.ReplaceAll(arg, w.model.OpenAIURL(), url+"/v1")
				}
				return w, args
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				w, args := unreached(t)
				reportsUnreached(t, w, append([]string{"run", "--format", "json", "--text", "hello"}, args...)...)
			})
			t.Run(name+" session, "+kind, func(t *testing.T) {
				t.Parallel()
				w, args := unreached(t)
				w.mustExec("", append([]string{"session", "start", "--name", "one"}, args...)...)
				defer w.mustExec("", "session", "stop", "one")
				reportsUnreached(t, w, "session", "send", "one", "hello")
			})
		}
	}
}

// silentServer returns the address of a server that accepts connections and never
// answers.
func silentServer(t *testing.T) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var held []net.Conn // an unreachable connection would be closed
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-accepted
		for _, c := range held {
			c.Close()
		}
	})
	return l.Addr()
}

// reportsUnreached runs a command until it reports that the model cannot be reached.
func reportsUnreached(t *testing.T, w *fixture, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.busAgent(), args...)
	cmd.Dir, cmd.Env = w.repo, w.environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun, said := time.Now(), ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(said, "gets no answer from its model (") || strings.Contains(said, "has had no answer from its model") {
			break
		}
	}
	took := time.Since(begun)
	reported := slices.ContainsFunc([]string{"gets no answer from its model (", "has had no answer from its model", "Connection refused", "ENOTFOUND", "EAI_AGAIN", "fetch failed"}, func(text string) bool {
		return strings.Contains(said, text)
	})
	if !reported || took > 30*time.Second {
		t.Errorf("after %v standard error says: %s", took, said)
	}
	cancel()
	_ = cmd.Wait()
}
