package control_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"log"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// The session calls Delivered and Over while it holds its lock. Every call that waits for
// that lock meanwhile holds none that these callbacks may take, and all of them end.
func TestLockOrderOfAServedSession(t *testing.T) {
	t.Parallel()
	for _, callback := range []string{"Delivered", "Over"} {
		t.Run(callback, func(t *testing.T) {
			t.Parallel()
			// The goroutines of the session get the label too.
			pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(context.Context) { testLockOrder(t, callback) })
		})
	}
}

func testLockOrder(t *testing.T, callback string) {
	b := newBench(t)
	b.Serve, b.Runner.Recorder = true, warner{}
	entered, leave := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(leave) })
	defer release()
	hold := func(turn *session.Turn) {
		if turn.Number() == 1 {
			close(entered)
			<-leave
		}
	}
	gate := filepath.Join(b.workdir, "gate")
	options := session.Options{Over: hold}
	if callback != "Over" {
		options = session.Options{Delivered: func(turn *session.Turn, _ session.Message) { hold(turn) }}
	}
	h := b.startWith(control.StartOptions{}, options)
	e := b.until(h, session.StateReady)
	c := &control.Client{Store: b.Store}
	c.SetStopLimit(testwait.Limit)
	locks := b.Locks(h)
	turn, err := b.Send(h, control.Message{Text: "hold " + gate})
	if err != nil {
		t.Fatal(err)
	}
	if callback == "Over" {
		<-turn.Delivered()
		// It waits until the session is not sending any more, and has no other effect.
		if _, err := c.Interrupt(t.Context(), e, testwait.Limit); err != nil {
			t.Fatal(err)
		}
		b.makeFile(gate)
	}
	<-entered

	var calls sync.WaitGroup
	for _, call := range []struct {
		frames []string // where it waits
		do     func()
	}{
		{[]string{"(*held).save", "(*Session).State"}, func() { b.Signal(h) }},
		{[]string{"(*Manager).find", "(*Session).Info"}, func() { _, _ = b.Session(control.SessionHandle{SessionID: "native-new"}) }},
		{[]string{"(*held).status", "(*Session)."}, func() { _, _ = c.Show(t.Context(), e) }},
		{[]string{"(*held).reached", "(*Session)."}, func() {
			_ = c.Watch(t.Context(), e, control.WatchOptions{Last: -1, Until: session.StateReady}, control.Watcher{})
		}},
		{[]string{"(*held).answer", "(*Session).Approvals"}, func() { _ = c.Answer(t.Context(), e, "", session.Accept) }},
		{[]string{"(*held).steer", "(*Session)."}, func() { _, _, _ = c.Steer(t.Context(), e, control.Message{Text: "x"}) }},
		{[]string{"(*held).send", "(*Session).add"}, func() { _, _ = c.Send(t.Context(), e, control.Message{Text: "x"}) }},
		{[]string{"(*Session).beginInterrupt"}, func() { _, _ = c.Interrupt(t.Context(), e, testwait.Limit) }},
		{[]string{"(*held).stop", "(*Session).Stop"}, func() { _ = c.Stop(t.Context(), e, "") }},
	} {
		if callback == "Delivered" && call.frames[0] == "(*Session).beginInterrupt" {
			continue // it waits for the delivery
		}
		calls.Go(call.do)
		awaitLocked(t, call.frames)
		for name, lock := range locks {
			free := make(chan struct{})
			go func() {
				lock.Lock()
				defer lock.Unlock()
				close(free)
			}()
			awaitClosed(t, free, "the lock of the "+name+" is held in "+call.frames[0])
		}
	}
	if callback == "Delivered" {
		b.makeFile(gate)
	}
	release()
	ended := make(chan struct{})
	go func() {
		calls.Wait()
		close(ended)
	}()
	awaitClosed(t, ended, "the calls do not end")
}

// awaitClosed ends the program after a while, because a session in a deadlock could not be
// stopped by the test either.
func awaitClosed(t *testing.T, c <-chan struct{}, failure string) {
	select {
	case <-c:
	case <-time.After(testwait.Limit):
		log.Fatalf("%s: deadlock: %s", t.Name(), failure)
	}
}

// awaitLocked waits until a goroutine of the test that is in all of the functions waits
// for a lock.
func awaitLocked(t *testing.T, frames []string) {
	t.Helper()
	testwait.Until(t, fmt.Sprintf("a goroutine that waits in %v", frames), func() (seen string, ok bool) {
		var stacks strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
			t.Fatal(err)
		}
		for stack := range strings.SplitSeq(stacks.String(), "\n\n") {
			if !slices.ContainsFunc(append(frames, `"`+t.Name()+`"`, "(*Mutex).lockSlow"), func(part string) bool { return !strings.Contains(stack, part) }) {
				return "", true
			}
		}
		return stacks.String(), false
	})
}

var (
	locking   = regexp.MustCompile(`^(.+\.mu)\.(Lock|Unlock)$`)
	ofSession = regexp.MustCompile(`\.s\.[A-Z]\w*$`)
)

// No function calls the session between Lock and Unlock of a field mu: such a call can
// come after another one that TestLockOrderOfAServedSession sees waiting.
func TestSessionIsNotCalledUnderALock(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			held := map[string]bool{}
			ast.Inspect(decl, func(n ast.Node) bool {
				if _, ok := n.(*ast.DeferStmt); ok {
					return false // it holds the lock to the end
				}
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				text := types.ExprString(call.Fun)
				if m := locking.FindStringSubmatch(text); m != nil {
					held[m[1]] = m[2] == "Lock"
				}
				if ofSession.MatchString(text) {
					calls++
					for lock, is := range held {
						if is {
							t.Errorf("%s: %s is called under %s", files.Position(call.Pos()), text, lock)
						}
					}
				}
				return true
			})
		}
	}
	if calls < 10 {
		t.Errorf("only %d calls of sessions found", calls)
	}
}
