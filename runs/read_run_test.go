package runs

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/process"
)

func TestStatusOfALostRunnerIsCrashed(t *testing.T) {
	t.Parallel()
	child := exec.Command("/bin/cat")
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	before := time.Now().UTC()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := child.Process.Pid
	identity, err := process.Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	store := &Records{Root: t.TempDir()}
	infos := map[string]Info{
		"runner":   {Owner: identity},
		"elder":    {Owner: identity[:strings.LastIndexByte(identity, ':')] + ":1", PID: pid}, // had the PID earlier
		"abroad":   {Owner: "another:4026531836:1:1", PID: pid},
		"nonsense": {Owner: "nonsense"},
		"pid":      {PID: pid, StartTime: before},
		"recycled": {PID: pid, StartTime: before.Add(-time.Hour)},
		"none":     {},
		"negative": {PID: -1},
		"over":     {Owner: identity, PID: pid, Status: StatusFailed, EndTime: before},
		"no end":   {Owner: identity, PID: pid, Status: StatusCompleted}, // written by the agent
		"queued":   {Status: "queued", EndTime: before},
	}
	i := 0
	for name, some := range infos {
		info := exampleInfo(i)
		i++
		info.TaskID, info.Owner, info.PID = name, some.Owner, some.PID
		info.EndTime, info.Status = some.EndTime, StatusRunning
		if some.Status != "" {
			info.Status = some.Status
		}
		if !some.StartTime.IsZero() {
			info.StartTime = some.StartTime
		}
		put(t, store.Root, info)
	}
	check := func(want map[string]Status) {
		t.Helper()
		for _, run := range mustList(t, store, Filter{}) {
			if run.Status != want[run.TaskID] {
				t.Errorf("%s is %s, want %s", run.TaskID, run.Status, want[run.TaskID])
			}
			if running := run.Status == StatusRunning; run.EndTime.IsZero() && (run.Duration() > 0) != running {
				t.Errorf("%s is %s and took %s", run.TaskID, run.Status, run.Duration())
			}
		}
	}
	want := map[string]Status{
		"runner": StatusRunning, "elder": StatusCrashed, "abroad": StatusUnknown, "nonsense": StatusUnknown,
		"pid": StatusRunning, "recycled": StatusCrashed, "none": StatusUnknown, "negative": StatusUnknown, "over": StatusFailed,
		"no end": StatusRunning, "queued": StatusUnknown,
	}
	check(want)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it ends by the signal
	want["runner"], want["pid"], want["no end"] = StatusCrashed, StatusCrashed, StatusCompleted
	check(want)
	for status, n := range map[Status]int{StatusCrashed: 4, StatusUnknown: 5, StatusRunning: 0} {
		if list := mustList(t, store, Filter{Status: status}); len(list) != n {
			t.Errorf("%d runs are %s, want %d", len(list), status, n)
		}
	}
}
