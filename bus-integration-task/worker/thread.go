package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// placeFile has the ID of a folder with the sessions of tasks. No task's folder has this name.
const placeFile = "place-id"

// placeOf returns the ID of the folder where sessions are kept, which it makes. Workers on
// several machines have the same ID if they share the folder. Without a folder it is empty.
func placeOf(folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	name := filepath.Join(folder, placeFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = makePlace(folder, name)
		if err == nil {
			text, err = os.ReadFile(name)
		}
	}
	return strings.TrimSpace(string(text)), err
}

// makePlace writes a new ID unless another process has.
func makePlace(folder, name string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	part, err := os.CreateTemp(folder, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	_, err = part.WriteString(rand.Text() + "\n")
	if err := errors.Join(err, part.Close()); err != nil {
		return err
	}
	if err := os.Link(part.Name(), name); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// inThread adds the session of a runtime to the payload of an event.
func (a *attempt) inThread(c backend.Conversation, p task.Payload) task.Payload {
	p.RunID = c.RunID
	if c.ThreadID != "" {
		p.ThreadID, p.ThreadRuntime, p.ThreadPlace = c.ThreadID, c.Runtime, a.place
	}
	return p
}

// thread returns the session to resume. It is empty if the state of the session is elsewhere.
func (a *attempt) thread(ctx context.Context) task.Thread {
	t := a.state.Thread
	if t.ID != "" && t.Place != "" && t.Place != a.place {
		a.report(ctx, task.Message, task.Payload{Text: "the session of the task is not in the state folder of this worker; a new one begins"})
		return task.Thread{}
	}
	return t
}
