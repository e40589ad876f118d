package closeout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-integration-task/internal/unix"
)

// ErrNotesUnavailable: the command bus cannot be found outside the workspaces, or it has
// no token. Policy.RequireBusNotes decides whether that blocks a task.
var ErrNotesUnavailable = errors.New("cannot use Bus Notes")

// NotesTag is the tag of the notes of attempts.
const NotesTag = "agent-work-log"

// Notes publishes engineering notes with `bus notes add`. Its method may be called
// concurrently while no field changes.
type Notes struct {
	// Environ is the environment that PATH, the token and the secrets to be masked come
	// from. Nil is an empty one.
	Environ []string

	// Workspaces are folders that tasks can change. The command bus is never started
	// from there, nor through a link that is in one.
	Workspaces []string

	// Timeout bounds a call; zero means 30 seconds.
	Timeout time.Duration
}

// A Note is an engineering note. Everything but Text is an argument of the command, so it
// is never secret; Text is masked and shortened to MaxText.
type Note struct {
	Module  string // the recipient
	WorkRef string
	Session string // run record or attempt
	Text    string
}

// NotesDue reports whether the hourly note of an attempt is due: elapsed is the time since
// its start, and published counts its hourly notes.
func NotesDue(elapsed time.Duration, published int) bool {
	return int64(elapsed/time.Hour) > int64(published)
}

// NotesQuery returns the query that finds the notes of a task.
func NotesQuery(module, workRef string) string {
	return fmt.Sprintf("module=%s task=%s tag=%s", module, workRef, NotesTag)
}

// Add publishes a note and returns its IDs, at least one. The token is in the environment
// of the command, never in its arguments. When ctx ends or the time is up, the command
// and what it started are killed. Errors that match ErrNotesUnavailable mean that nothing
// was started.
func (n *Notes) Add(ctx context.Context, note Note) ([]string, error) {
	path := n.path()
	program, err := n.program(path)
	if err != nil {
		return nil, err
	}
	environ, err := n.environ(path)
	if err != nil {
		return nil, err
	}
	masker := runner.NewMasker(n.Environ)
	each(&note, func(text string) string { return strings.ReplaceAll(masker.Text(text), "\x00", "�") })

	timeout := n.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than %v", timeout))
	defer cancel()
	c := exec.CommandContext(ctx, program, "notes", "add",
		"--module="+note.Module, "--task="+note.WorkRef, "--session="+note.Session,
		"--tag="+NotesTag, "--source=bus-integration-task", "--", shortened(note.Text, MaxText))
	c.Dir, c.Env = "/", environ
	unix.OwnGroup(c)
	c.Cancel = func() error { return unix.SignalGroup(c, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	var stdout, stderr beginning
	c.Stdout, c.Stderr = &stdout, &stderr
	switch err := c.Run(); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("bus notes add: %w", context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("bus notes add: %w%s", err, with(shortened(line(masker.Text(stderr.kept.String())), 500)))
	}
	ids := noteIDs(stdout.kept.Bytes())
	if len(ids) == 0 {
		return nil, errors.New("bus notes add: it reported no ID")
	}
	return ids, nil
}

// path returns the absolute entries of PATH that no task can change. The command bus
// finds bus-notes there.
func (n *Notes) path() []string {
	list, _ := agent.LookupEnv(n.Environ, "PATH")
	return slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) || n.touched(dir) })
}

// touched reports whether a task can change what file is.
func (n *Notes) touched(file string) bool {
	return slices.ContainsFunc(n.Workspaces, func(folder string) bool { return instructions.Touches(folder, file) })
}

// program returns the executable of the command bus in a list of folders.
func (n *Notes) program(path []string) (string, error) {
	for _, dir := range path {
		file := filepath.Join(dir, "bus")
		info, err := os.Stat(file)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && !n.touched(file) {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w: no command bus in an absolute entry of PATH outside the workspaces", ErrNotesUnavailable)
}

// passed are the variables that the command bus gets besides its token.
var passed = strings.Fields("HOME LANG LC_ALL TMPDIR TZ XDG_CONFIG_HOME BUS_CONFIG_DIR BUS_NOTES_API_URL SSL_CERT_FILE SSL_CERT_DIR HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy")

const tokenEnv = "BUS_NOTES_API_TOKEN"

// environ returns the environment of the command bus.
func (n *Notes) environ(path []string) ([]string, error) {
	environ := []string{"PATH=" + strings.Join(path, string(filepath.ListSeparator))}
	for _, name := range passed {
		if value, ok := agent.LookupEnv(n.Environ, name); ok {
			environ = append(environ, name+"="+value)
		}
	}
	for _, name := range []string{tokenEnv, "BUS_API_TOKEN"} {
		if token, _ := agent.LookupEnv(n.Environ, name); token != "" {
			return append(environ, tokenEnv+"="+token), nil
		}
	}
	return nil, fmt.Errorf("%w: neither %s nor BUS_API_TOKEN is set", ErrNotesUnavailable, tokenEnv)
}

var noteID = regexp.MustCompile(`\bnotes?[-_:#/][A-Za-z0-9][A-Za-z0-9._-]{0,120}`)

// noteIDs returns the IDs in the output of bus notes add: the members id and ids of its
// JSON, or else the words of its text that begin like note-.
func noteIDs(out []byte) []string {
	var object struct {
		ID  string   `json:"id"`
		IDs []string `json:"ids"`
	}
	ids := noteID.FindAllString(string(out), MaxItems)
	if json.Unmarshal(out, &object) == nil {
		ids = append(object.IDs, object.ID)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" || len(id) > 128 || line(id) != id })
	slices.Sort(ids)
	return first(slices.Compact(ids))
}

// A beginning keeps the beginning of an output.
type beginning struct{ kept bytes.Buffer }

// Write takes all of b.
func (w *beginning) Write(b []byte) (int, error) {
	const most = 64 << 10
	w.kept.Write(b[:min(len(b), most-w.kept.Len())])
	return len(b), nil
}
