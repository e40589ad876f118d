package process

import (
	"os"
	"strings"
	"testing"
	"time"
)

// After the deadline a stream has everything that is in the pipe at that moment, and
// nothing that is written later.
func TestStreamEndsWithWhatIsInThePipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	want := strings.Repeat("x", 40<<10)
	if _, err := w.WriteString(want); err != nil {
		t.Fatal(err)
	}
	r.SetReadDeadline(time.Unix(1, 0))
	var got strings.Builder
	s := stream{r, writerFunc(func(b []byte) (int, error) {
		if got.Len() > 1<<20 {
			t.Error("it does not end")
			w.Close()
		} else if _, err := w.Write(b); err != nil {
			t.Error(err)
		}
		return got.Write(b)
	})}
	if err := s.copy(func(err error) { t.Error(err) }); err != nil {
		t.Error(err)
	}
	if got.String() != want {
		t.Errorf("got %d bytes, want %d", got.Len(), len(want))
	}
}
