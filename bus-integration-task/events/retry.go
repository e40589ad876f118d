package events

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Retry says how a stream reconnects: with waits that double from Min to Max, each
// shortened at random by up to a half. It continues until the context ends.
type Retry struct {
	Disabled bool          // fail instead of reconnecting
	Min, Max time.Duration // first and longest wait; 0 for 1 and 30 seconds
	// Random returns a number in [0, 1); nil for a random source that is seeded by
	// the system. Streams call it at the same time.
	Random func() float64
}

// RetryFromEnvironment reads BUS_EVENTS_LISTENER_RETRY (1 or 0),
// BUS_EVENTS_LISTENER_RETRY_MIN and BUS_EVENTS_LISTENER_RETRY_MAX (durations such as
// 500ms). getenv is os.Getenv or like it. Unset variables leave the defaults.
func RetryFromEnvironment(getenv func(string) string) (Retry, error) {
	var r Retry
	const name = "BUS_EVENTS_LISTENER_RETRY"
	switch value := getenv(name); value {
	case "", "1", "true":
	case "0", "false":
		r.Disabled = true
	default:
		return Retry{}, invalid("%s: %q is not 1 or 0", name, oneLine(value))
	}
	for suffix, to := range map[string]*time.Duration{"_MIN": &r.Min, "_MAX": &r.Max} {
		value := getenv(name + suffix)
		if value == "" {
			continue
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return Retry{}, invalid("%s%s: %q is not a duration above zero; use for example 5s", name, suffix, oneLine(value))
		}
		*to = d
	}
	if b := r.backoff(); b.max < b.min {
		return Retry{}, invalid("%s_MAX: %s is less than the minimum of %s", name, b.max, b.min)
	}
	return r, nil
}

func (r Retry) backoff() *backoff {
	b := &backoff{min: r.Min, max: r.Max, random: r.Random}
	if b.min <= 0 {
		b.min = time.Second
	}
	if b.max <= 0 {
		b.max = max(b.min, 30*time.Second)
	}
	if b.random == nil {
		b.random = rand.Float64
	}
	return b
}

// backoff counts the waits of a stream.
type backoff struct {
	min, max time.Duration
	random   func() float64
	failures int
}

func (b *backoff) reset() { b.failures = 0 }

func (b *backoff) next() time.Duration {
	wait := b.min
	for range b.failures {
		if wait >= b.max {
			break
		}
		wait *= 2
	}
	wait = min(wait, b.max)
	if b.failures < 63 {
		b.failures++
	}
	return wait - time.Duration(b.random()*float64(wait)/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// String shows the waits.
func (r Retry) String() string {
	if r.Disabled {
		return "no retry"
	}
	b := r.backoff()
	return fmt.Sprintf("%s to %s", b.min, b.max)
}
