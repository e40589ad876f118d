//go:build linux || darwin

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What a run of the command may cost, and what a client may pay that goes through
// bus-agent.
const (
	maxRun    = 5 * time.Millisecond
	maxTurn   = 10 * time.Millisecond
	maxMemory = 10e6
)

// stubDefinition is the stub as a runtime of bus-agent.
const stubDefinition = `{"name":"Stub","executables":["stub"],"install_url":"https://example.invalid","output":"text",
"args":["{access}"],"access":{"read":[],"write":[],"full":[]},"acp":{"args":["talk"]}}`

// through measures what a run by the command costs, and what a client pays that goes through bus-agent to an agent: by the
// Agent Client Protocol, and by the Model Context Protocol. The agent is the stub, so that
// a difference of microseconds shows.
func (b *bench) through() error {
	home, err := os.MkdirTemp(b.dir, "home-")
	if err != nil {
		return err
	}
	env := []string{"PATH=" + b.dir, "HOME=" + home, "TMPDIR=" + home}
	define := exec.Command(b.binary, "set", "runtime-definition", "stub", "-")
	define.Env, define.Dir, define.Stdin = env, b.work, strings.NewReader(stubDefinition)
	if out, err := define.CombinedOutput(); err != nil {
		return fmt.Errorf("defining the stub: %w: %s", err, out)
	}
	run := func() error {
		c := exec.Command(b.binary, "run", "--agent", "stub", prompt)
		c.Env, c.Dir = env, b.work
		return c.Run()
	}
	if err := b.compareTurns("bus-agent run of the stub", "os/exec of the stub", b.rawStub, run, maxRun); err != nil {
		return err
	}
	direct, err := dial(b.work, env, filepath.Join(b.dir, "stub"), talking)
	if err != nil {
		return err
	}
	defer direct.close()
	turn, err := direct.openACP()
	if err != nil {
		return err
	}
	if err := b.throughACP(env, turn); err != nil {
		return fmt.Errorf("through bus-agent acp: %w", err)
	}
	if err := b.throughMCP(env, turn); err != nil {
		return fmt.Errorf("through bus-agent mcp: %w", err)
	}
	return direct.close()
}

// throughACP compares a turn with one by bus-agent acp.
func (b *bench) throughACP(env []string, turn func() error) error {
	w, err := dial(b.work, env, b.binary, "acp", "--agent", "stub")
	if err != nil {
		return err
	}
	defer w.close()
	through, err := w.openACP()
	if err != nil {
		return err
	}
	if err := b.compareTurns("a turn through bus-agent acp", "the stub itself", turn, through, maxTurn); err != nil {
		return err
	}
	b.addMemory("bus-agent acp", w)
	return w.close()
}

// throughMCP compares a turn with a message by bus-agent mcp, and a run of the stub with
// one by it.
func (b *bench) throughMCP(env []string, turn func() error) error {
	if _, err := os.Stat(b.binary + "-mcp"); err != nil {
		b.table.add(row{work: "through bus-agent mcp", figure: "not measured: make build-mcp builds it"})
		return nil
	}
	w, err := dial(b.work, env, b.binary, "mcp", "--max-runs", "1000000")
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.openMCP(); err != nil {
		return err
	}
	var session struct {
		ID string `json:"session_id"`
	}
	if err := w.tool("start_session", map[string]any{"runtime": "stub", "prompt": prompt}, &session); err != nil {
		return err
	}
	var got struct{ Text string }
	if err := b.compareTurns("send_message through bus-agent mcp", "the stub itself", turn, func() error {
		err := w.tool("send_message", map[string]any{"session_id": session.ID, "message": prompt}, &got)
		if err == nil && got.Text != "hello" {
			err = fmt.Errorf("the stub said %q", got.Text)
		}
		return err
	}, maxTurn); err != nil {
		return err
	}
	if err := b.compareTurns("run_agent through bus-agent mcp", "os/exec of the stub", b.rawStub, func() error {
		return w.tool("run_agent", map[string]any{"runtime": "stub", "prompt": prompt}, &got)
	}, maxTurn); err != nil {
		return err
	}
	b.addMemory("bus-agent mcp", w)
	return w.close()
}

// compareTurns compares two ways to do a turn.
func (b *bench) compareTurns(work, other string, itself, through func() error, most time.Duration) error {
	costs, err := inTurn(b.starts, warmUpStarts, timed(itself), timed(through))
	if err != nil {
		return err
	}
	b.addMore(fmt.Sprintf("%s, %d times", work, b.starts), other, costs[0], costs[1], most)
	return nil
}

// addMore adds a row for how much more time something takes.
func (b *bench) addMore(work, other string, limits, figures []time.Duration, target time.Duration) {
	limit, got := median(limits, itself), median(figures, itself)
	b.table.add(row{
		work: work, figure: fmt.Sprintf("%s (min %.3f)", milliseconds(got), ms(slices.Min(figures))),
		limit:  fmt.Sprintf("%s %s (min %.3f)", other, milliseconds(limit), ms(slices.Min(limits))),
		ratio:  fmt.Sprintf("%+.3f ms", ms(got-limit)),
		target: fmt.Sprintf("≤ %d ms more", target.Milliseconds()), met: got-limit <= target,
	})
}

// addMemory adds a row for the memory of a process.
func (b *bench) addMemory(name string, w *wire) {
	all, private := w.memory()
	if all == 0 {
		return // not known on this system
	}
	b.table.add(row{
		work: "memory of " + name + " after them", figure: fmt.Sprintf("%.1f MB (%.1f MB without the program file)", float64(all)/1e6, float64(private)/1e6),
		target: "≤ 10 MB", met: all <= maxMemory,
	})
}
