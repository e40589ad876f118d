package cmdline

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
)

// What is written arrives in order until readers are given up; then a reader that
// does not read holds up nothing, and one that reads still gets the rest.
func TestOutlet(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	over := newOutlets()
	good := &outlet{w: &got, over: over.over}
	for _, text := range []string{"a", "", "bc"} {
		if n, err := good.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d bytes, %v", text, n, err)
		}
	}
	r, w := io.Pipe()
	defer r.Close()
	bad := &outlet{w: w, over: over.over}
	failed := make(chan error)
	go func() {
		_, err := bad.Write([]byte("lost"))
		failed <- err
	}()
	select {
	case err := <-failed:
		t.Fatalf("given up before it is time: %v", err)
	default:
	}
	over.close()
	if err := <-failed; !errors.Is(err, errNotRead) {
		t.Errorf("got %v", err)
	}
	if _, err := bad.Write([]byte("lost too")); !errors.Is(err, errNotRead) {
		t.Errorf("got %v", err)
	}
	if _, err := good.Write([]byte("d")); err != nil || got.String() != "abcd" {
		t.Errorf("%q arrived, %v", got.String(), err)
	}
}

// A pipe whose reader does not read is given up, and what fits still arrives.
func TestOutletOfAFullPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	over := newOutlets()
	out := over.writer(w)
	if _, ok := out.(*timedOutlet); !ok {
		t.Fatalf("a pipe is written by a %T", out)
	}
	failed := make(chan error)
	go func() {
		_, err := out.Write(make([]byte, 8<<20))
		failed <- err
	}()
	select {
	case err := <-failed:
		t.Fatalf("given up before it is time: %v", err)
	default:
	}
	over.close()
	if err := <-failed; !errors.Is(err, errNotRead) {
		t.Errorf("got %v", err)
	}
	var discarded [1 << 20]byte
	if _, err := r.Read(discarded[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte("last")); err != nil {
		t.Errorf("got %v", err)
	}
}
