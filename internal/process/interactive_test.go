package process

import (
	"bufio"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInputIsWrittenWhileTheProcessRuns(t *testing.T) {
	t.Parallel()
	out, in := io.Pipe()
	s := agent(t, step{Do: "cat"})
	s.Interactive, s.Stdout = true, in
	p, err := Start(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for _, line := range []string{"one\n", strings.Repeat("long ", 100_000) + "\n"} {
		go io.WriteString(p.Input(), line)
		if got, err := lines.ReadString('\n'); err != nil || got != line {
			t.Errorf("%.20q, %v", got, err)
		}
	}
	p.Input().Close()
	if exit, err := p.Wait(); exit != (Exit{}) || err != nil {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestInputThatIsNotReadEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	s := agent(t, step{Do: "hang"})
	s.Interactive = true
	p, err := Start(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		_, err := io.WriteString(p.Input(), strings.Repeat("x", 8<<20))
		failed <- err
	}()
	p.Stop()
	if exit, err := p.Wait(); !exit.Stopped || err != nil {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := <-failed; err == nil {
		t.Error("all of it was written")
	}
	if _, err := io.WriteString(p.Input(), "x"); err == nil || errors.Is(err, unix.EAGAIN) {
		t.Errorf("written after the end: %v", err)
	}
}

func TestEndToolsLeavesTheAgentAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	s := agent(t,
		step{Do: "spawn", Child: &child{Session: true, Steps: []step{{Do: "report", Text: file("tool")}, {Do: "hang"}}}},
		step{Do: "spawn", Child: &child{Session: true, Steps: []step{{Do: "ignore"}, {Do: "report", Text: file("stubborn")}, {Do: "hang"}}}},
		step{Do: "spawn", Child: &child{Steps: []step{{Do: "report", Text: file("helper")}, {Do: "hang"}}}},
		step{Do: "cat"},
	)
	s.Interactive = true
	p, err := Start(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	tools := []id{reported(t, file("tool")), reported(t, file("stubborn"))}
	helper := reported(t, file("helper"))
	stopping := make(chan struct{})
	close(stopping)
	if p.run.endTools(stopping, nil); !tools[0].alive() {
		t.Error("a process that is to be stopped waits for the end of its tools")
	}
	p.EndTools()
	for i, tool := range tools {
		if tool.alive() {
			t.Errorf("tool %d is alive", i)
		}
	}
	if !helper.alive() {
		t.Error("what shares the agent's session was ended too")
	}
	select {
	case <-p.Done():
		t.Error("the agent was ended too")
	default:
	}
	p.EndTools() // with nothing to end
	p.Input().Close()
	if exit, err := p.Wait(); exit.Code != 0 || exit.Stopped || err != nil {
		t.Errorf("%+v, %v", exit, err)
	}
	p.EndTools() // with nothing left
	if helper.alive() {
		t.Error("the helper outlives the agent")
	}
}
