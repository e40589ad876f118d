package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/busdk/bus-integration-task/internal/unix"
	"github.com/busdk/bus-integration-task/task"
)

// ErrNotAlone is in the error of [Alone] if another process holds the recipient.
var ErrNotAlone = errors.New("another worker of the recipient is running")

// Alone makes this process the only worker of a recipient among those that call Alone
// with the same folder, which it makes, until release is called or the process ends.
func Alone(folder, recipient string) (release func(), err error) {
	if recipient, err = task.ParseRecipient(recipient); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(folder, recipient+".lock")
	f, err := unix.Lock(name)
	if errors.Is(err, unix.ErrHeld) {
		err = fmt.Errorf("%w: @%s: it holds %s; stop it, or use --one-worker-per-recipient=false", ErrNotAlone, recipient, name)
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = unix.Unlock(f) }, nil
}
