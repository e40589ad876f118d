package task

import (
	"testing"
	"time"
)

func TestContenderSpreadsAfterLosses(t *testing.T) {
	t.Parallel()
	c, same := NewContender("w1"), NewContender("w1")
	if i, wait := c.Next(10, time.Second); i != 0 || wait != 0 {
		t.Errorf("a lone worker waits %s for task %d", wait, i)
	}
	same.Next(10, time.Second)
	for range 20 {
		c.Lost()
		same.Lost()
	}
	if c.Window() != maxWindow {
		t.Errorf("window %d", c.Window())
	}
	seen, waited := map[int]bool{}, false
	for range 1000 {
		i, wait := c.Next(100, time.Millisecond)
		if j, other := same.Next(100, time.Millisecond); i != j || wait != other {
			t.Fatal("not deterministic")
		}
		if i < 0 || i >= 100 || wait < 0 || wait > maxWindow*time.Millisecond {
			t.Fatalf("task %d after %s", i, wait)
		}
		seen[i], waited = true, waited || wait > 0
	}
	if len(seen) < 90 || !waited {
		t.Errorf("%d of 100 tasks tried", len(seen))
	}
	for range 500 {
		c.Won()
	}
	if c.Window() != 1 {
		t.Errorf("window %d after wins", c.Window())
	}
	if i, _ := c.Next(0, 0); i != 0 {
		t.Errorf("index %d of no tasks", i)
	}
}
