package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A process that could not be ended may hold the pipes open, and write to one.
func TestForeignHolderOfOutputBlocksNothing(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]bool{"silent": false, "writing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "go")
			s := agent(t, step{Do: "await", Text: file}, step{Do: "print", Text: "done"})
			s.Stdin = strings.Repeat("p", 1<<20)
			out := &strings.Builder{}
			s.Stdout = out
			p, err := Start(soon(t), s)
			if err != nil {
				t.Fatal(err)
			}
			holder, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", p.Pid()), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			reader, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/0", p.Pid()), os.O_RDONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close() // it never reads
			stop := make(chan struct{})
			finished := make(chan struct{})
			go func() {
				defer close(finished)
				for busy {
					if _, err := holder.WriteString(strings.Repeat(".", 4096)); err != nil {
						return // no reader is left
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
			if err := os.Mkdir(file, 0o700); err != nil {
				t.Fatal(err)
			}
			if exit, err := p.Wait(); err != nil || exit != (Exit{}) {
				t.Errorf("got %+v, %v", exit, err)
			}
			if got := strings.Trim(out.String(), "."); got != "done" {
				t.Errorf("got %q", got)
			}
			close(stop)
			<-finished
			holder.Close()
		})
	}
}
