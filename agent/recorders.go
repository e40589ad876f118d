package agent

import (
	"context"
	"errors"
	"io"
)

// Recorders returns a recorder that calls all of them in order. The first that sets a
// RunID wins. Nil recorders are left out; the result is nil if there are none. Groups are
// for those that are a [GroupRecorder].
func Recorders(list ...Recorder) Recorder {
	var all recorders
	for _, r := range list {
		if r != nil {
			all = append(all, r)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

type recorders []Recorder

func (all recorders) Record(ctx context.Context, run Recordable) (Recording, error) {
	var joined Recording
	for _, r := range all {
		recording, err := r.Record(ctx, run)
		if err != nil {
			if joined.End != nil {
				err = errors.Join(err, joined.End(ctx, Result{Runtime: run.Start.Runtime, Model: run.Start.Model, ExitCode: -1}, err))
			}
			return Recording{}, err
		}
		joined.add(recording)
		if joined.Prompt != "" {
			run.Request.Prompt = joined.Prompt
		}
	}
	return joined, nil
}

// Group begins a group of every recorder that has groups.
func (all recorders) Group(ctx context.Context, environ []string) (context.Context, func(Result, error)) {
	var ends []func(Result, error)
	for _, r := range all {
		if g, ok := r.(GroupRecorder); ok {
			var end func(Result, error)
			ctx, end = g.Group(ctx, environ)
			ends = append(ends, end)
		}
	}
	return ctx, func(result Result, err error) {
		for _, end := range ends {
			end(result, err)
		}
	}
}

// add makes other receive the run too.
func (r *Recording) add(other Recording) {
	if r.RunID == "" {
		r.RunID = other.RunID
	}
	if other.Prompt != "" {
		r.Prompt = other.Prompt
	}
	r.Env = append(r.Env, other.Env...)
	r.Stdout, r.Stderr = both(r.Stdout, other.Stdout), both(r.Stderr, other.Stderr)
	r.Events = bothCalls(r.Events, other.Events)
	r.Message = bothCalls(r.Message, other.Message)
	r.Command, r.Started = inTurn(r.Command, other.Command), inTurn(r.Started, other.Started)
	if first, second := r.End, other.End; first == nil {
		r.End = second
	} else if second != nil {
		r.End = func(ctx context.Context, result Result, err error) error {
			return errors.Join(first(ctx, result, err), second(ctx, result, err))
		}
	}
}

func inTurn[T any](first, second func(T)) func(T) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(v T) { first(v); second(v) }
}

func bothCalls[T any](first, second func(T) error) func(T) error {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(v T) error {
		if err := first(v); err != nil {
			return err
		}
		return second(v)
	}
}

func both(first, second io.Writer) io.Writer {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return io.MultiWriter(first, second)
}
