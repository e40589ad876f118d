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
	// longestStep is the longest wait between two requests when the server names
	// none, before up to half of it is added.
	longestStep = 32 * time.Second
	// longestWait is the longest wait that a server can ask for. One that wants
	// more has said that this is over for now.
	longestWait = 2 * time.Minute
)

// A clock is what time there is; tests bring their own.
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

// backoff returns how long to wait before the given attempt, 1 being the first
// after a failure.
func (c clock) backoff(attempt int) time.Duration {
	step := longestStep
	if attempt <= 5 {
		step = time.Second << (attempt - 1)
	}
	return step + time.Duration(c.jitter()*float64(step)/2)
}

// notNamed is what retryAfter returns where no time is named.
const notNamed = time.Duration(-1)

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseFloat(header, 64); err == nil && !math.IsNaN(seconds) {
		return time.Duration(min(max(seconds, 0), float64(math.MaxInt32)) * float64(time.Second))
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, date.Sub(now))
	}
	return notNamed
}

// isTransient reports whether a connection that failed with err can be had later.
func isTransient(err error) bool {
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &certificate), errors.As(err, &notTLS):
		return false
	case errors.As(err, &name):
		return !name.IsNotFound
	}
	return true
}
