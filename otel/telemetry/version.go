package telemetry

import "context"

// A version is that of an agent's CLI, which takes a moment to answer. The nil version
// stays unknown.
type version struct {
	answered chan struct{}
	text     string
	cancel   context.CancelFunc
}

// ask starts to ask the CLI for its version.
func ask(ctx context.Context, text func(context.Context) (string, error)) *version {
	ctx, cancel := context.WithCancel(ctx)
	v := &version{answered: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(v.answered)
		v.text, _ = text(ctx)
	}()
	return v
}

// known returns the version, or "" before the CLI has answered.
func (v *version) known() string {
	if v == nil {
		return ""
	}
	select {
	case <-v.answered:
		return v.text
	default:
		return ""
	}
}

// stop returns when the CLI is asked no longer: the end of a run does not wait for the
// answer.
func (v *version) stop() {
	if v != nil {
		v.cancel()
		<-v.answered
	}
}
