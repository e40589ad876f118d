package session

import (
	"testing"
	"time"
)

func TestUnknownAge(t *testing.T) {
	t.Parallel()
	if got := age(time.Time{}); got != "-" {
		t.Errorf("age %q of a session without a start", got)
	}
}
