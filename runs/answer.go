package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// maxAnswer bounds output.md, in bytes: masking it must not hold up the end of the run.
const maxAnswer = 64 << 20

// writeAnswer writes output.md unless the agent did: the decoded answer or, without
// one, the agent's standard output. That of a session is a protocol, not an answer.
func (r *record) writeAnswer(ctx context.Context, result *agent.Result) error {
	own, err := r.folder.Open(outputName)
	switch {
	case err == nil:
		defer own.Close()
		return r.maskAnswer(ctx, own)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot read the agent's %s: %w", outputName, err)
	case result.Text != "", r.info.Session:
		return r.folder.ReplaceFrom(outputName, strings.NewReader(r.mask.Text(result.Text)), false)
	}
	said, err := r.stdout.written()
	if err != nil {
		return err
	}
	return r.putAnswer(ctx, said, said.Size())
}

// maskAnswer removes secrets from the output.md of the agent.
func (r *record) maskAnswer(ctx context.Context, own *os.File) error {
	info, err := own.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= r.maxAnswer {
		if r.mask == nil {
			return nil
		}
		counted := &counter{}
		if err := maskTo(counted, untilDone{ctx, own}, r.mask); err != nil || counted.size == info.Size() {
			return err // a secret is longer than what replaces it
		}
		if _, err := own.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	from, to := io.Pipe()
	defer from.Close()
	go func() { to.CloseWithError(maskTo(to, own, r.mask)) }()
	return r.putAnswer(ctx, from, info.Size())
}

// putAnswer writes output.md from a text of the given size, up to maxAnswer.
func (r *record) putAnswer(ctx context.Context, text io.Reader, size int64) error {
	if err := r.folder.ReplaceFrom(outputName, untilDone{ctx, io.LimitReader(text, r.maxAnswer)}, false); err != nil {
		return err
	}
	if size > r.maxAnswer {
		return fmt.Errorf("%s ends after %d MiB of %d bytes", outputName, r.maxAnswer>>20, size)
	}
	return nil
}

// untilDone is a reader that ends with its context.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

func (u untilDone) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.from.Read(b)
}

func maskTo(to io.Writer, from io.Reader, mask *runner.Masker) error {
	w := mask.Writer(to)
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
