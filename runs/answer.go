package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// writeAnswer writes output.md unless the agent has: the answer that was decoded,
// or, where there is none, all that the agent wrote.
func (r *record) writeAnswer(result *agent.Result) error {
	path := filepath.Join(r.dir, outputName)
	own, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case err == nil:
		defer own.Close()
		return r.maskAnswer(path, own)
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%s is a link that the agent has put there", outputName)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if result.Text != "" {
		return writeNew(path, strings.NewReader(r.mask.text(result.Text)))
	}
	said, err := r.stdout.written()
	if err != nil {
		return err
	}
	return writeNew(path, said)
}

// maskAnswer removes secrets from what the agent has written itself.
func (r *record) maskAnswer(path string, own *os.File) error {
	info, err := own.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file, the agent has put something else there", outputName)
	case !r.mask.some:
		return nil
	}
	counted := &counter{}
	if err := maskTo(counted, own, &r.mask); err != nil || counted.size == info.Size() {
		return err // a secret is longer than what stands for it
	}
	if _, err := own.Seek(0, io.SeekStart); err != nil {
		return err
	}
	from, to := io.Pipe()
	defer from.Close()
	go func() { to.CloseWithError(maskTo(to, own, &r.mask)) }()
	return writeNew(path, from)
}

func maskTo(to io.Writer, from io.Reader, mask *masker) error {
	w := runner.NewMaskWriter(to, mask.environ)
	if _, err := io.Copy(w, from); err != nil {
		return err
	}
	return w.Flush()
}

// counter counts bytes.
type counter struct{ size int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.size += int64(len(b))
	return len(b), nil
}

// writeNew writes a file that appears whole.
func writeNew(path string, from io.Reader) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
