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

// useBackoff is the value of retryAfter for a header without a time.
const useBackoff = time.Duration(-1)

// retryAfter returns the time to wait in a Retry-After header, which holds seconds
// or a date.
func retryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseFloat(header, 64); err == nil && !math.IsNaN(seconds) {
		return time.Duration(min(max(seconds, 0), float64(math.MaxInt32)) * float64(time.Second))
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, date.Sub(now))
	}
	return useBackoff
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
