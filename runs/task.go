package runs

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
)

// A Task is a task with its message bus, which its runs and other programs share.
type Task struct {
	Project, ID string
	Dir         string // the folder of its files
}

// FindTask returns the task that a handle names: a task ID, optionally after its project
// with a slash between, or the handle of one of its runs, see [Records.Find]. A handle
// of no task or of several is an agent.ErrUsage error.
func (s *Records) FindTask(ctx context.Context, handle string) (Task, error) {
	filter, id, ok := s.parseHandle(handle)
	if ok && id != Latest && filter.Project == "" {
		filter.Project, filter.Task = filter.Task, id
		dirs, _, err := s.taskFolders(&filter, new(listBudget)) // an unreadable folder has no task
		switch {
		case err != nil:
			return Task{}, err
		case len(dirs) == 1:
			return taskIn(dirs[0]), nil
		case len(dirs) > 1:
			return Task{}, agent.Usagef("%d projects have the task %q; write PROJECT/%s", len(dirs), id, id)
		}
	}
	run, err := s.Find(ctx, handle)
	if err != nil {
		return Task{}, err
	}
	return taskIn(filepath.Dir(filepath.Dir(run.Dir))), nil
}

func taskIn(dir string) Task {
	return Task{Project: filepath.Base(filepath.Dir(dir)), ID: filepath.Base(dir), Dir: dir}
}

// Messages returns the messages of the task, see [ReadMessages]. It has none without a
// message bus file.
func (t *Task) Messages() ([]Message, error) {
	list, err := ReadMessages(filepath.Join(t.Dir, busName))
	return list, ignoreMissing(err)
}

// Post adds a message to the task, see [Post]. Project and task of the message are set.
// Without a body, with a type that is not of capital letters, digits and underscores,
// and with one of a run's own types, it is an agent.ErrUsage error.
func (t *Task) Post(ctx context.Context, m Message) error {
	switch {
	case strings.TrimSpace(m.Body) == "":
		return agent.Usagef("the message is empty; nothing was posted")
	case !messageType().MatchString(m.Type):
		return agent.Usagef("message type %q is not of capital letters, digits and underscores; nothing was posted", m.Type)
	case slices.Contains([]string{MessageStart, MessageStop, MessageCrash}, m.Type):
		return agent.Usagef("message type %s is for the program that records a run; nothing was posted", m.Type)
	}
	folder, err := statefile.OpenDir(t.Dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	if !folder.Held(t.Dir) {
		return &fs.PathError{Op: "post", Path: t.Dir, Err: errors.New("it is a symbolic link")}
	}
	m.Project, m.Task = t.Project, t.ID
	return postIn(ctx, folder, busName, m)
}

var messageType = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`) })
