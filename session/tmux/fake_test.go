package tmux

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// fakeCLI is a pane with a CLI of a simple kind in it: the messages, a mark of
// work while it works, and a prompt with the input, or a dialog.
type fakeCLI struct {
	mu      sync.Mutex
	lines   []string
	prompt  string // empty for none
	input   string
	working bool
	// placeholder says that the prompt makes way for the input.
	placeholder bool
	dialog      string        // shown instead, until Enter
	deaf        int           // writes that it loses
	swallows    int           // Enters that it loses
	work        time.Duration // on each message
	forever     bool          // until Escape
	lag         time.Duration // before it shows that it works
	stalled     bool          // it does not read, see stall
	queue       []func()      // what it has not read
	keys        []string
	refusal     error // of key presses
	got         []string
	done        chan struct{}
	once        sync.Once
	why         error
	resume      string // session to resume
}

const workMark = "* working (esc to interrupt)"

func (f *fakeCLI) engine(t engine.Terminal) *paneEngine {
	f.done = make(chan struct{})
	return newEngine("test", t, nil, func(context.Context) (pane, error) { return f, nil })
}

func (f *fakeCLI) look(context.Context) (screen, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := screen{lines: slices.Clone(f.lines)}
	select {
	case <-f.done:
		s.dead = true
	default:
	}
	switch {
	case f.dialog != "":
		s.lines = append(s.lines, f.dialog)
	default:
		if f.working {
			s.lines = append(s.lines, workMark)
		}
		if f.placeholder && f.input != "" {
			s.lines = append(s.lines, "> "+f.input)
		} else if f.prompt != "" || f.input != "" {
			s.lines = append(s.lines, splitLines(f.prompt+f.input)...)
		}
	}
	return s, nil
}

func (f *fakeCLI) since(ctx context.Context, _ int, _ screen) ([]string, error) {
	s, err := f.look(ctx)
	return s.lines, err
}

func (f *fakeCLI) paste(ctx context.Context, text string) error { return f.write(ctx, text) }

func (f *fakeCLI) write(_ context.Context, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read(func() {
		if f.deaf > 0 {
			f.deaf--
			return
		}
		f.input += text
	})
	return nil
}

// read calls typed, or later if the CLI does not read.
func (f *fakeCLI) read(typed func()) {
	if f.stalled {
		f.queue = append(f.queue, typed)
		return
	}
	typed()
}

// stall lets the CLI read nothing for a time.
func (f *fakeCLI) stall(d time.Duration) {
	f.now(func() { f.stalled = true })
	f.later(d, func() {
		f.stalled = false
		for _, typed := range f.queue {
			typed()
		}
		f.queue = nil
	})
}

func (f *fakeCLI) unread() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue) > 0
}

func (f *fakeCLI) press(_ context.Context, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal != nil {
		return f.refusal
	}
	f.keys = append(f.keys, key)
	f.read(func() {
		switch key {
		case "Enter":
			f.enter()
		case "C-u":
			f.input = ""
		case "Escape":
			if f.dialog != "" {
				f.dialog = ""
			} else if f.working {
				f.working = false
				f.lines = append(f.lines, "stopped")
			}
		}
	})
	return nil
}

func (f *fakeCLI) enter() {
	if f.swallows > 0 {
		f.swallows--
		return
	}
	if f.dialog != "" {
		f.dialog = ""
		return
	}
	text := f.input
	f.got = append(f.got, text)
	f.lines = append(f.lines, f.prompt+text)
	f.input = ""
	switch {
	case f.working: // it was steered
	case f.forever:
		f.working = true
	case f.lag == 0 && f.work == 0:
		f.lines = append(f.lines, "answer to "+text)
	default:
		time.AfterFunc(f.lag, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.working = true
		})
		time.AfterFunc(f.lag+f.work, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.working = false
			f.lines = append(f.lines, "answer to "+strings.Join(f.got, " and "))
		})
	}
}

// later changes the CLI after a time.
func (f *fakeCLI) later(d time.Duration, change func()) {
	time.AfterFunc(d, func() { f.now(change) })
}

// now changes the CLI.
func (f *fakeCLI) now(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeCLI) refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal = err
}

func (f *fakeCLI) pressed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.keys)
}

func (f *fakeCLI) wait() error {
	<-f.done
	return f.why
}

func (f *fakeCLI) hangUp() { f.end(nil) }

// end ends the CLI.
func (f *fakeCLI) end(why error) {
	f.once.Do(func() {
		f.why = why
		close(f.done)
	})
}

// It is the process of its session, too.
func (f *fakeCLI) Stop()                 { f.end(nil) }
func (f *fakeCLI) Done() <-chan struct{} { return f.done }

func (f *fakeCLI) open(ctx context.Context, t engine.Terminal) (*session.Session, error) {
	return session.Open(ctx, "test", f.engine(t), f, engine.Transport{}, engine.Start{Resume: f.resume}, session.Options{})
}
