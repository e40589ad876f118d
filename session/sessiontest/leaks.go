package sessiontest

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// leakLimit is how long goroutines may take to end.
const leakLimit = 10 * time.Second

// leakLabel marks goroutines, which hand it on to those they start.
const leakLabel = "sessiontest.Leaks"

var leakChecks atomic.Int64

// Leaks calls f and returns the stacks of the goroutines started by f, directly
// or indirectly, that have not ended ten seconds after f returned; usually none.
// Other goroutines do not matter, so it works in parallel tests, nor does that of
// os/signal, which does not end before the process. In TestMain, f is the call of m.Run.
func Leaks(f func()) string {
	mark := strconv.FormatInt(leakChecks.Add(1), 10)
	pprof.Do(context.Background(), pprof.Labels(leakLabel, mark), func(context.Context) { f() })
	begun := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		left := marked(mark)
		if left == "" || time.Since(begun) > leakLimit {
			return left
		}
		time.Sleep(pause)
	}
}

// marked returns the stacks of the goroutines with a mark.
func marked(mark string) string {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1) // a buffer takes everything
	var left []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		_, labels, ok := strings.Cut(stack, "# labels: ")
		labels, _, _ = strings.Cut(labels, "\n")
		if ok && strings.Contains(labels, strconv.Quote(leakLabel)+":"+strconv.Quote(mark)) && !strings.Contains(stack, "\tos/signal.loop+") {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}
