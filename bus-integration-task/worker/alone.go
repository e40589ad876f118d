package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

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
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w: @%s: it holds %s; stop it, or use --one-worker-per-recipient=false", ErrNotAlone, recipient, name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // Close does so unless a process that is being started has a copy
		f.Close()
	}, nil
}
