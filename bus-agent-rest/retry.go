package main

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxBackoff is the longest wait if the server names none, without jitter.
	maxBackoff = 32 * time.Second
	// maxRetryAfter is the longest Retry-After that is waited for.
	maxRetryAfter = 2 * time.Minute
)

// A clock is the source of time, replaced in tests.
type clock struct {
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
	jitter func() float64 // in [0, 1)
}

func realClock() clock {
	return clock{now: time.Now, sleep: sleep, jitter: rand.Float64}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// backoff returns how long to wait after the given attempt, the first being 1.
func (c clock) backoff(attempt int) time.Duration {
	step := maxBackoff
	if attempt <= 5 {
		step = time.Second << (attempt - 1)
	}
	return step + time.Duration(c.jitter()*float64(step)/2)
}

// useBackoff is the value of retryAfter for a response that names no time.
const useBackoff = time.Duration(-1)

// retryAfter returns the time to wait that a response names, in milliseconds, or in
// Retry-After as seconds or a date. The milliseconds are the more precise.
func retryAfter(header http.Header, now time.Time) time.Duration {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if d, ok := toDuration(header.Get(name), time.Millisecond); ok {
			return d
		}
	}
	value := header.Get("Retry-After")
	if d, ok := toDuration(value, time.Second); ok {
		return d
	}
	if date, err := http.ParseTime(strings.TrimSpace(value)); err == nil {
		return max(0, date.Sub(now))
	}
	return useBackoff
}

// toDuration returns the duration of a number of units.
func toDuration(number string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(n) {
		return 0, false
	}
	return time.Duration(min(max(n, 0), float64(math.MaxInt32)) * float64(unit)), true
}

// isTransient reports whether a connection that failed with err may succeed later.
func isTransient(err error) bool {
	var untrusted *tls.CertificateVerificationError
	var lookup *net.DNSError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &untrusted), errors.As(err, &notTLS):
		return false
	case errors.As(err, &lookup):
		return !lookup.IsNotFound
	}
	return true
}
