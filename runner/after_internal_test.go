package runner

import (
	"context"
	"testing"
	"time"
)

// The work after the end of an agent has one time budget, with a reserve for the end of
// the record. It stops soon after the caller's context.
func TestOneBudgetAfterTheAgent(t *testing.T) {
	t.Parallel()
	parent, stop := context.WithCancel(t.Context())
	p := &prepared{}
	all := p.after(parent)
	cleaning := p.cleaning
	if p.after(parent) != all || p.cleaning != cleaning {
		t.Error("a second call begins another budget")
	}
	end, _ := all.Deadline()
	before, ok := cleaning.Deadline()
	if left := time.Until(end); !ok || !before.Before(end) || left > afterLimit {
		t.Errorf("%v are left, the cleaning ends at %v and all at %v", left, before, end)
	}
	stop()
	<-cleaning.Done()
	<-all.Done()
	if left := time.Until(end); left <= 0 {
		t.Error("the end of the caller's context does not end it")
	}
	p.finish()
	if p.afterwards != nil {
		t.Error("it is not over")
	}
}
