package backend

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/runner"
)

// reports is what a reporter has called, with the time since its start.
type reports struct {
	*reporter
	begun time.Time
	calls []string
	sizes []int
}

func newReports(environ ...string) *reports {
	r := &reports{begun: time.Now()}
	note := func(kind string) func(string) {
		return func(text string) {
			r.calls = append(r.calls, fmt.Sprintf("%v %s %s", time.Since(r.begun), kind, text))
			r.sizes = append(r.sizes, len(text))
		}
	}
	r.reporter = newReporter(Listener{Notice: note("notice"), Message: note("message"), Progress: note("progress")}, runner.NewMasker(environ))
	return r
}

func (r *reports) want(t *testing.T, want ...string) {
	t.Helper()
	r.close()
	if got := strings.Join(r.calls, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("reported\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestTextIsGathered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReports()
		r.message("1", "one ", true)
		synctest.Wait()
		for i := range 3 {
			time.Sleep(100 * time.Millisecond) // less than a second in all
			r.message("1", fmt.Sprint(i), true)
			r.progress(fmt.Sprintf("line %d", i))
		}
		r.message("2", "another", false)
		time.Sleep(time.Minute)
		r.message("3", "later", false)
		synctest.Wait()
		r.want(t, "0s message one", "1s progress line 0\nline 1\nline 2", "1s message 0\n\n1\n\n2\n\nanother", "1m0.3s message later")
	})
}

func TestNoticePassesTextOnAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReports()
		r.message("1", "first", false)
		synctest.Wait()
		r.message("2", "before", true)
		r.notice("now")
		synctest.Wait()
		r.message("2", "after", true)
		time.Sleep(time.Minute)
		r.want(t, "0s message first", "0s message before", "0s notice now", "1s message after")
	})
}

// An agent that never stops talking makes a bounded number of reports of bounded size.
func TestChattyAgentDoesNotFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReports()
		for range 30 * 60 * 20 { // half an hour
			r.message("1", strings.Repeat("ä", 500), true)
			r.progress(strings.Repeat("b", 500))
			time.Sleep(50 * time.Millisecond)
		}
		r.close()
		if n := len(r.calls); n < 200 || n > 900 {
			t.Errorf("%d reports", n)
		}
		for i, size := range r.sizes {
			if size > MaxText || size < 400 {
				t.Errorf("a report of %d bytes", size)
			}
			if strings.Contains(r.calls[i], "\uFFFD") {
				t.Error("a character was cut")
			}
		}
	})
}

func TestSecretInPiecesIsMasked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReports("A_TOKEN=sk-very-secret")
		r.message("1", "the key is sk-ve", true)
		time.Sleep(5 * time.Second) // it may be reported up to the secret
		r.message("1", "ry-secret.", false)
		time.Sleep(5 * time.Second)
		r.progress("curl sk-very-secret\x1b[31m\nnext")
		synctest.Wait()
		r.notice("sk-very-secret")
		r.message("2", "not a secret: sk-very", false)
		r.notice("the end")
		synctest.Wait()
		r.want(t, "0s message the key is", "5s message ***.", "10s progress curl *** next", "10s notice ***", "10s message not a secret: sk-very", "10s notice the end")
	})
}

func TestFlushWaitsForTheListener(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got string
		r := newReporter(Listener{Message: func(text string) {
			time.Sleep(time.Hour)
			got += text
		}}, nil)
		r.message("1", "slow", false)
		r.flush()
		if got != "slow" {
			t.Errorf("flush returned before the listener, which has %q", got)
		}
		r.close()
		r.flush()
		r.notice("dropped")
	})
}
