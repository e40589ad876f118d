package simulate

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	seeds   = flag.Uint64("seeds", 3000, "simulations to run")
	seed    = flag.Uint64("seed", 0, "run this one alone, with its trace")
	workers = flag.Int("workers", 100, "workers of TestContention and TestScale")
	tasks   = flag.Int("tasks", 2000, "tasks of TestScale")
)

func small(seed uint64) Config {
	return Config{
		Seed: seed, Workers: 2 + int(seed%5), Tasks: 12, Recipients: 1 + int(seed%2), Lease: 30 * time.Second,
		Work: time.Minute, Arrival: 10 * time.Second, Latency: 20 * time.Millisecond,
		FaultEvery: time.Duration(5+seed%20) * time.Second, RestartEvery: time.Duration(40+seed%160) * time.Second, Users: seed%3 == 0, StopPromoting: 10,
	}
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		config := small(*seed)
		config.Trace = os.Stdout
		for _, v := range Run(config).Violations {
			t.Error(v)
		}
		return
	}
	var recovered, crashes, restarts atomic.Int64
	const parts = 4
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for n := part + 1; n <= *seeds; n += parts {
				r := Run(small(n))
				recovered.Add(int64(len(r.Recovered)))
				crashes.Add(int64(r.Crashes))
				restarts.Add(int64(r.Restarts))
				if len(r.Violations) > 0 {
					t.Fatal(failure(n, small(n)))
				}
			}
		})
	}
	t.Cleanup(func() {
		if crashes.Load() == 0 || recovered.Load() == 0 || restarts.Load() == 0 {
			t.Errorf("%d crashes of holders, %d recovered, %d restarts of the server: the faults do not reach the rules", crashes.Load(), recovered.Load(), restarts.Load())
		}
	})
}

// failure runs the seed again and returns its violations, how to replay it, and the trace up
// to the first one.
func failure(seed uint64, config Config) string {
	var trace bytes.Buffer
	config.Trace = &trace
	r := Run(config)
	before, after, _ := strings.Cut(trace.String(), "VIOLATION")
	lines := strings.SplitAfter(before+"VIOLATION"+after[:strings.Index(after, "\n")+1], "\n")
	return fmt.Sprintf("seed %d: %s\nreplay: go test ./task/simulate -run 'TestSeeds$' -seed %d\n%s",
		seed, strings.Join(r.Violations, "\n"), seed, strings.Join(lines[max(0, len(lines)-100):], ""))
}

func TestBrokenRulesAreSeen(t *testing.T) {
	t.Parallel()
	for _, broken := range []rule{noLock, noRecovery, noCondition} {
		report := ""
		for n := uint64(1); n < 500 && report == ""; n++ {
			config := small(n)
			config.broken = broken
			if first := Run(config).Violations; len(first) > 0 {
				if report = failure(n, config); !strings.Contains(report, first[0]) || !strings.Contains(report, "VIOLATION "+first[0]) {
					t.Errorf("seed %d: the replay has not %q:\n%s", n, first[0], report)
				}
			}
		}
		if report == "" {
			t.Errorf("nothing was seen of broken rule %d", broken)
		}
	}
}

func TestSameSeedSameRun(t *testing.T) {
	t.Parallel()
	if a, b := Run(small(7)), Run(small(7)); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// TestContention prints the first table of docs/scale.md: all workers for one recipient,
// half of them idle.
func TestContention(t *testing.T) {
	t.Parallel()
	for n := 1; n <= *workers; n *= 10 {
		show(t, Config{Seed: 1, Workers: n, Tasks: *tasks, Recipients: 1, Lease: time.Minute, Work: 5 * time.Minute,
			Arrival: 5 * time.Minute / time.Duration(n) * 2, Latency: 5 * time.Millisecond})
	}
}

// TestScale prints the second table of docs/scale.md: 100 workers a recipient, with faults.
func TestScale(t *testing.T) {
	t.Parallel()
	show(t, Config{Seed: 1, Workers: *workers, Tasks: *tasks, Recipients: max(1, *workers/100), Lease: time.Minute, Work: 5 * time.Minute,
		Arrival: 5 * time.Minute / time.Duration(*workers) * 3 / 2, Latency: 5 * time.Millisecond,
		FaultEvery: 100 * time.Minute / time.Duration(*workers), RestartEvery: time.Hour})
}

func show(t *testing.T, c Config) {
	t.Helper()
	before := used(t)
	r := Run(c)
	after := used(t)
	for _, v := range r.Violations {
		t.Error(v)
	}
	slices.Sort(r.Recovered)
	median, most := time.Duration(0), time.Duration(0)
	if n := len(r.Recovered); n > 0 {
		median, most = r.Recovered[n/2], r.Recovered[n*99/100]
	}
	seconds, claims := r.Elapsed.Seconds(), max(r.Claims, 1)
	t.Logf("%d workers, %d recipients, %d tasks: %.1f events a task, of them %.1f renewals; %.2f refused a claim (%.2f of the first %d); %.1f appends/s, %.0f deliveries/s; "+
		"claimed after %s; %d restarts, %d crashes, replaced after %s (99%%: %s); %s of a processor, %d MB",
		c.Workers, c.Recipients, c.Tasks, float64(r.Events)/float64(c.Tasks), float64(r.Renewals)/float64(c.Tasks),
		float64(r.LostClaims)/float64(claims), float64(r.LostFirst)/float64(min(claims, firstClaims)), firstClaims,
		float64(r.Events+r.Refused)/seconds, float64(r.Events)/seconds*float64(c.Workers),
		(r.Waited / time.Duration(claims)).Round(time.Millisecond), r.Restarts, r.Crashes, median.Round(time.Second), most.Round(time.Second),
		(time.Duration(after.Utime.Nano()-before.Utime.Nano()) + time.Duration(after.Stime.Nano()-before.Stime.Nano())).Round(100*time.Millisecond), after.Maxrss>>10)
}

// used returns the processor time and the memory, in KiB on Linux, of this process.
func used(t *testing.T) (u syscall.Rusage) {
	t.Helper()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u
}
