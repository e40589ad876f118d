package engine_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/session/engine"
)

func TestLineWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		lines := engine.NewLineWriter(w)
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if begun, err := lines.Write(late, []byte("begun")); !begun || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a line that is not read: %v, %v", begun, err)
		}
		waiting, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if begun, err := lines.Write(waiting, []byte("not begun")); begun || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a line behind it: %v, %v", begun, err)
		}
		if begun, err := lines.Write(waiting, []byte("too late")); begun || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a line after the context: %v, %v", begun, err)
		}
		for i := range 1001 {
			if err := lines.Post([]byte("posted")); (err == nil) != (i < 1000) {
				t.Errorf("line %d is posted: %v", i, err)
			}
		}
		in := bufio.NewScanner(r)
		for i := range 1001 {
			want := "posted"
			if i == 0 {
				want = "begun"
			}
			if !in.Scan() || in.Text() != want {
				t.Fatalf("line %d is %q", i, in.Text())
			}
		}
		synctest.Wait()
		failed := make(chan error)
		go func() {
			_, err := lines.Write(context.Background(), []byte("x"))
			failed <- err
		}()
		synctest.Wait()
		if err := lines.Close(); err != nil {
			t.Error(err)
		}
		if err := <-failed; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a write that Close ends: %v", err)
		}
	})
}
