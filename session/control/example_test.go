package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// example is a runner whose runtime, talker, repeats what it is sent, a store, and a
// program that holds sessions. Yours is runner.Runner{} with the runtimes that the
// program imports, control.DefaultDir, and bus-agent or your own program.
func example() (r *runner.Runner, store *control.Store, host control.Program, work string, remove func()) {
	dir, err := os.MkdirTemp("", "control-example-")
	if err != nil {
		panic(err)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	bin, work := filepath.Join(dir, "bin"), filepath.Join(dir, "work")
	for _, err := range []error{
		os.Mkdir(bin, 0o700), os.Mkdir(work, 0o700), os.Symlink(self, filepath.Join(bin, "talker")), os.Symlink(self, filepath.Join(bin, "host")),
	} {
		if err != nil {
			panic(err)
		}
	}
	var known registry.Registry
	if err := known.Register(talker("talker")); err != nil {
		panic(err)
	}
	environ := []string{"PATH=" + bin, "HOME=" + dir, "TMPDIR=" + dir, "GORACE=atexit_sleep_ms=0"}
	host = control.Program{Path: filepath.Join(bin, "host"), Args: []string{"host"}, Environ: environ}
	return &runner.Runner{Registry: &known, Environ: environ}, control.NewStore(filepath.Join(dir, "state")), host, work, func() { os.RemoveAll(dir) }
}

// Start a session in this process, and send a message.
func ExampleManager() {
	r, store, _, work, remove := example()
	defer remove()
	ctx := context.Background()

	m := &control.Manager{Runner: r, Store: store}
	defer m.Close(ctx, "done")
	h, err := m.Start(ctx, control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: work, TurnTimeout: time.Minute}})
	if err != nil {
		fmt.Println(err)
		return
	}
	turn, err := m.Send(h, control.Message{Text: "What does this project do?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := turn.Wait(ctx)
	fmt.Println(turn.Number(), result.Text, err)
	// Output: 1 What does this project do? <nil>
}

// Attach to a session that another process holds, here one in the background, and
// talk with it.
func ExampleClient() {
	_, store, host, work, remove := example()
	defer remove()
	ctx := context.Background()

	starter := &control.Client{Store: store, Host: host}
	if _, err := starter.Start(ctx, control.StartOptions{Name: "tour", Settings: control.Settings{Runtime: "talker", Workdir: work}}); err != nil {
		fmt.Println(err)
		return
	}

	// Another program, later.
	client := &control.Client{Store: store}
	e, err := client.Find("tour")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Stop(ctx, e, "done")
	result, err := client.Ask(ctx, e, control.Message{Text: "Run the tests"}, control.Watcher{
		Record: func(r *control.LogRecord) error {
			if r.Event != nil {
				fmt.Println("turn", r.Event.Turn, r.Event.Kind)
			}
			return nil
		},
	})
	fmt.Println(result.Text, err)
	// Output:
	// turn 1 text
	// turn 1 result
	// Run the tests <nil>
}

// Wait until the agent of a session requests an approval, and give it.
func ExampleClient_Answer() {
	_, store, host, work, remove := example()
	defer remove()
	ctx := context.Background()
	client := &control.Client{Store: store, Host: host}
	e, err := client.Start(ctx, control.StartOptions{InitialPrompt: "ask", Settings: control.Settings{Runtime: "talker", Workdir: work}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Stop(ctx, e, "done")

	if err := client.Watch(ctx, e, control.WatchOptions{Until: session.StateWaiting}, control.Watcher{}); err != nil {
		fmt.Println(err)
		return
	}
	st, err := client.Show(ctx, e)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range st.Approvals {
		fmt.Println(a.ID, client.Answer(ctx, e, a.ID, session.Accept))
	}
	// Output: 1 <nil>
}

// Accept an approval request by a callback, as a program does that holds the session
// itself.
func ExampleManager_approve() {
	r, store, _, work, remove := example()
	defer remove()
	ctx := context.Background()
	m := &control.Manager{Runner: r, Store: store}
	defer m.Close(ctx, "done")
	opts := control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: work}}
	h, err := m.StartWith(ctx, opts, session.Options{
		Approve: func(_ context.Context, a session.Approval) session.Decision {
			fmt.Println("approve", a.ID)
			return session.Accept
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	turn, err := m.Send(h, control.Message{Text: "ask"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = turn.Wait(ctx)
	fmt.Println(err)
	// Output:
	// approve 1
	// <nil>
}

// Interrupt the turn that is running, and bound the time of the next one.
func ExampleManager_Session() {
	r, store, _, work, remove := example()
	defer remove()
	ctx := context.Background()
	m := &control.Manager{Runner: r, Store: store}
	defer m.Close(ctx, "done")
	h, err := m.Start(ctx, control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: work}})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := m.Session(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	turn := s.Send(session.Message{Text: "ask"})
	<-turn.Delivered()
	if err := s.Interrupt(ctx); err != nil {
		fmt.Println(err)
	}
	_, err = turn.Wait(ctx)
	fmt.Println(errors.Is(err, agent.ErrCanceled))

	_, err = s.Send(session.Message{Text: "ask", TurnTimeout: 10 * time.Millisecond}).Wait(ctx)
	fmt.Println(errors.Is(err, agent.ErrTimeout))
	// Output:
	// true
	// true
}

// Stop a session that another process holds, and resume it later. The errors of a
// client can be matched.
func ExampleClient_Stop() {
	_, store, host, work, remove := example()
	defer remove()
	ctx := context.Background()
	client := &control.Client{Store: store, Host: host}
	e, err := client.Start(ctx, control.StartOptions{Name: "tour", InitialPrompt: "hello", Settings: control.Settings{Runtime: "talker", Workdir: work}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := client.Stop(ctx, e, "done"); err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Send(ctx, e, control.Message{Text: "Are you there?"})
	fmt.Println(errors.Is(err, control.ErrNotRunning))

	e, err = client.Resume(ctx, e, control.ResumeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.State)
	fmt.Println(client.Stop(ctx, e, "done"))
	// Output:
	// true
	// ready
	// <nil>
}
