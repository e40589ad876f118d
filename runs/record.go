package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/runner"
)

// The files of a run.
const (
	promptName = "prompt.md"
	stdoutName = "agent-stdout.txt"
	stderrName = "agent-stderr.txt"
	outputName = "output.md"
	eventsName = "events.ndjson"
	taskName   = "TASK.md"
	runsName   = "runs" // folder of a task
)

// record is a run that is being recorded.
type record struct {
	store *Records
	ctx   context.Context // of the run
	task  string          // path of the folder of the task
	dir   string          // path of the folder of the run
	bus   string
	info  Info

	// The two folders, held since they were made or found: an agent can put
	// anything else under their paths.
	taskFolder, folder *statefile.Dir

	mask      *runner.Masker
	warn      func(string)
	maxAnswer int64

	version func() string // of the agent's CLI; see askVersion

	stdout, stderr *outputFile
	events         *eventFile
	announced      bool // RUN_START was posted

	mu      sync.Mutex
	problem error // the first thing that could not be written
}

// Record begins the record of a run. See [agent.Recorder]: an error of kind
// agent.ErrUsage is a place that cannot be, any other one is returned only where
// the record is required.
func (s *Records) Record(ctx context.Context, run agent.Recordable) (agent.Recording, error) {
	place, err := s.labels(&run)
	if err != nil {
		return agent.Recording{}, err
	}
	if err := checkEnv(run.Request.Env); err != nil {
		return agent.Recording{}, err
	}
	r, prompt, err := s.begin(ctx, &run, place)
	if err == nil && s.AgentVersion && run.Version != nil {
		asking := ctx
		if run.Session { // ctx bounds its beginning alone
			asking = context.WithoutCancel(ctx)
		}
		r.askVersion(asking, run.Version)
	}
	if err != nil {
		if s.Required {
			return agent.Recording{}, fmt.Errorf("it must be recorded in %s: %w", s.Root, err)
		}
		run.Warn(fmt.Sprintf("the run is not recorded in %s: %v", s.Root, err))
		return agent.Recording{}, nil
	}
	recording := agent.Recording{
		RunID:   r.info.RunID,
		Env:     r.environment(&run),
		Command: func(c agent.Command) { r.command(run.Start.Path, c) },
		Started: r.started,
		Stdout:  r.stdout,
		Stderr:  r.stderr,
		Events:  r.event,
		Message: r.message,
		End:     r.end,
	}
	if prompt != run.Request.Prompt {
		recording.Prompt = prompt
	}
	return recording, nil
}

// place returns where the run belongs, complete but for what nobody said.
func (s *Records) labels(run *agent.Recordable) (agent.Labels, error) {
	place := run.Request.Labels
	if root, outer, ok := Outer(run.Environ); ok && root == s.Root {
		if place.Project == "" && place.Task == "" {
			place.Project, place.Task = outer.Project, outer.Task
		}
		place.Parent = cmp.Or(place.Parent, outer.Parent)
	}
	place.Project = cmp.Or(place.Project, ProjectOf(cmp.Or(run.Root, run.Start.Workdir)))
	for _, id := range []struct {
		text  string
		check func(string) error
	}{{place.Project, CheckProject}, {place.Task, CheckTask}, {place.Parent, CheckRun}, {place.Previous, CheckRun}} {
		if id.text == "" {
			continue
		}
		if err := id.check(id.text); err != nil {
			return place, err
		}
	}
	if place.Task == "" && place.Previous != "" {
		place.Task = s.taskOf(place.Project, place.Previous)
	}
	place.Task = cmp.Or(place.Task, NewTask(time.Now(), baseToken(run.Start.Runtime)))
	return place, nil
}

// taskOf returns the task of a project that has a run, "" when none has.
func (s *Records) taskOf(project, run string) string {
	tasks, _ := folders(filepath.Join(s.Root, project), "", new(listBudget)) // what cannot be read has no such run
	for _, task := range tasks {
		if CheckTask(task) != nil {
			continue
		}
		if found, err := s.openBelow(project, task, runsName, run); err == nil {
			found.Close()
			return task
		}
	}
	return ""
}

// begin makes the folder of a run with all that is known of it, and announces it.
func (s *Records) begin(ctx context.Context, run *agent.Recordable, place agent.Labels) (*record, string, error) {
	r := &record{store: s, ctx: ctx, mask: runner.NewMasker(run.Environ), warn: run.Warn, maxAnswer: maxAnswer}
	r.task = filepath.Join(s.Root, place.Project, place.Task)
	r.bus = filepath.Join(r.task, busName)
	r.info = newInfo(run, place)
	r.info.CWD, r.info.Model = r.mask.Text(r.info.CWD), r.mask.Text(r.info.Model)
	prompt, err := r.open(run, place)
	if err != nil {
		r.closeFolders()
		return nil, "", err
	}
	if err := r.writeTask(run.Request.Prompt); err != nil {
		_ = r.note(err)
	}
	if r.stdout, err = r.openOutput(stdoutName); err == nil {
		r.stderr, err = r.openOutput(stderrName)
	}
	if err == nil {
		r.events, err = r.openEvents()
	}
	if err != nil {
		r.abandon(err)
		return nil, "", err
	}
	if prompt != "" {
		_ = r.events.add(&Event{Time: r.info.StartTime, Event: agent.Event{Kind: KindMessage, Text: prompt}}, r)
		r.events.flush()
	}
	if err := r.post(ctx, MessageStart, r.startText()); err != nil {
		_ = r.note(err)
	} else {
		r.announced = true
	}
	if err := r.problem; err != nil && s.Required {
		r.abandon(err)
		return nil, "", err
	}
	return r, prompt, nil
}

// open makes and holds the folders of the run.
func (r *record) open(run *agent.Recordable, place agent.Labels) (prompt string, err error) {
	root, err := r.store.makeRoot(writable(run))
	if err != nil {
		return "", err
	}
	defer root.Close()
	project, err := root.MakeDir(place.Project)
	if err != nil {
		return "", err
	}
	defer project.Close()
	if r.taskFolder, err = project.MakeDir(place.Task); err != nil {
		return "", err
	}
	runs, err := r.taskFolder.MakeDir(runsName)
	if err != nil {
		return "", err
	}
	defer runs.Close()
	return r.settle(runs, run)
}

// closeFolders releases the folders.
func (r *record) closeFolders() {
	r.folder.Close()
	r.taskFolder.Close()
}

// settle gives the run its ID and its folder, which appears with what is known of
// the run in it: readers find it whole or not at all.
func (r *record) settle(runs *statefile.Dir, run *agent.Recordable) (prompt string, err error) {
	name := ""
	for range maxClashes {
		name = newPrefix + strconv.FormatUint(uint64(rand.Uint32()), 10)
		if err = runs.Mkdir(name); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	defer func() {
		if err == nil {
			return
		}
		if r.folder != nil {
			_, _ = r.folder.Remove(promptName), r.folder.Remove(infoName)
		}
		_ = runs.Remove(name)
	}()
	if r.folder, err = runs.Dir(name); err != nil {
		return "", err
	}
	for range maxClashes {
		r.info.RunID = newRunID(r.info.StartTime)
		r.locate(filepath.Join(r.task, runsName, r.info.RunID))
		prompt = run.Request.Prompt
		if r.store.Preamble && !run.Session {
			prompt = r.preamble() + prompt
		}
		if err = r.folder.ReplaceFrom(promptName, strings.NewReader(r.mask.Text(prompt)), false); err != nil {
			return "", err
		}
		if err = writeInfo(r.folder, &r.info); err != nil {
			return "", err
		}
		if err = runs.Rename(name, r.info.RunID); err == nil {
			r.folder.Named(r.dir)
		}
		if !errors.Is(err, fs.ErrExist) {
			return prompt, err
		}
	}
	return "", err
}

// maxClashes is how many IDs may be taken, by processes that have our PID in
// other containers.
const maxClashes = 100

// locate says where the run is.
func (r *record) locate(dir string) {
	r.dir = dir
	r.info.PromptPath = filepath.Join(dir, promptName)
	r.info.OutputPath = filepath.Join(dir, outputName)
	r.info.StdoutPath = filepath.Join(dir, stdoutName)
	r.info.StderrPath = filepath.Join(dir, stderrName)
	r.info.EventsPath = filepath.Join(dir, eventsName)
}

// newInfo returns what is known of a run before it begins.
func newInfo(run *agent.Recordable, place agent.Labels) Info {
	return Info{
		Version:          infoVersion,
		ParentRunID:      place.Parent,
		PreviousRunID:    place.Previous,
		ProjectID:        place.Project,
		TaskID:           place.Task,
		Agent:            run.Start.Runtime,
		ProcessOwnership: "managed",
		StartTime:        time.Now().UTC(),
		ExitCode:         -1,
		Status:           StatusRunning,
		CWD:              run.Start.Workdir,
		Runner:           process.Self(),
		Session:          run.Session,
		Model:            run.Start.Model,
		Access:           string(run.Request.Access),
	}
}

// infoVersion is the version of run-info.yaml that is written.
const infoVersion = 1

// writeTask writes what the task is about, unless that is written.
func (r *record) writeTask(prompt string) error {
	f, err := r.taskFolder.Create(taskName)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(r.mask.Text(prompt) + "\n")
	return errors.Join(err, f.Close())
}

// command notes what is about to be started. Of a run, started writes it.
func (r *record) command(path string, c agent.Command) {
	r.info.CommandLine = commandLine(path, c, r.info.PromptPath, r.mask)
	if !r.info.Session {
		return
	}
	if err := updateInfo(r.ctx, r.folder, &r.info); err != nil {
		_ = r.note(err)
	}
}

// started records the agent's process.
func (r *record) started(p agent.Process) {
	r.info.PID, r.info.PGID, r.info.Process = p.PID, p.PID, p.Identity
	if err := updateInfo(r.ctx, r.folder, &r.info); err != nil {
		_ = r.note(err)
	}
}

// note keeps the first problem, and returns it where the record is required.
func (r *record) note(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problem == nil {
		r.problem = err
	}
	if r.store.Required {
		return err
	}
	return nil
}

// abandon ends a record that was begun in vain.
func (r *record) abandon(why error) {
	r.warn = func(string) {} // the caller says it
	_ = r.end(r.ctx, agent.Result{ExitCode: -1, Model: r.info.Model}, fmt.Errorf("nothing was started, because the run cannot be recorded: %w", why))
}
