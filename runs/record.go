package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/unix"
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

	// The two folders, held open: an agent can replace what is at their paths.
	taskFolder, folder *statefile.Dir

	reserve *os.File // see makeReserve

	mask      *runner.Masker
	warn      func(string)
	maxAnswer int64

	version func() string // of the agent's CLI; see askVersion

	stdout, stderr *outputFile
	events         *eventFile
	announced      bool        // RUN_START was posted
	unprompted     atomic.Bool // a session without a first message, until it has one

	mu      sync.Mutex
	problem error // the first one
}

// Record begins the record of a run; see [agent.Recorder]. Invalid labels are an
// agent.ErrUsage error. Other errors are returned only if the record is required.
func (s *Records) Record(ctx context.Context, run agent.Recordable) (agent.Recording, error) {
	labels, err := s.labels(&run)
	if err != nil {
		return agent.Recording{}, err
	}
	if err := checkEnv(run.Request.Env); err != nil {
		return agent.Recording{}, err
	}
	r, prompt, err := s.begin(ctx, &run, labels)
	if err == nil && s.AgentVersion && run.Version != nil {
		asking := ctx
		if run.Session { // ctx bounds only its opening
			asking = context.WithoutCancel(ctx)
		}
		r.askVersion(asking, run.Version)
	}
	if err != nil {
		if s.Required {
			return agent.Recording{}, fmt.Errorf("a record in %s is required: %w", s.Root, err)
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

// labels returns the run's labels with defaults for project and task.
func (s *Records) labels(run *agent.Recordable) (agent.Labels, error) {
	labels := run.Request.Labels
	if root, outer, ok := Outer(run.Environ); ok && root == s.Root {
		if labels.Project == "" && labels.Task == "" {
			labels.Project, labels.Task = outer.Project, outer.Task
		}
		labels.Parent = cmp.Or(labels.Parent, outer.Parent)
	}
	labels.Project = cmp.Or(labels.Project, projectOf(cmp.Or(run.Root, run.Start.Workdir)))
	for _, id := range []struct {
		text  string
		check func(string) error
	}{{labels.Project, CheckProject}, {labels.Task, CheckTask}, {labels.Parent, CheckRun}, {labels.Previous, CheckRun}} {
		if id.text == "" {
			continue
		}
		if err := id.check(id.text); err != nil {
			return labels, err
		}
	}
	if labels.Task == "" && labels.Previous != "" {
		labels.Task = s.taskOf(labels.Project, labels.Previous)
	}
	labels.Task = cmp.Or(labels.Task, newTask(time.Now(), baseToken(run.Start.Runtime)))
	return labels, nil
}

// taskOf returns the task of a project that has a run, "" when none has.
func (s *Records) taskOf(project, run string) string {
	tasks, _ := folders(filepath.Join(s.Root, project), "", new(listBudget)) // an unreadable task counts as one without that run
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

// begin makes the folder of a run with its first files, and announces the run.
func (s *Records) begin(ctx context.Context, run *agent.Recordable, labels agent.Labels) (*record, string, error) {
	r := &record{store: s, ctx: ctx, mask: runner.NewMasker(slices.Concat(run.Environ, run.Secrets)), warn: run.Warn, maxAnswer: maxAnswer}
	r.task = filepath.Join(s.Root, labels.Project, labels.Task)
	r.bus = filepath.Join(r.task, busName)
	r.info = newInfo(run, labels)
	r.info.CWD, r.info.Model = r.mask.Text(r.info.CWD), r.mask.Text(r.info.Model)
	prompt, err := r.open(run)
	if err != nil {
		r.closeFolders()
		return nil, "", err
	}
	if run.Request.Prompt == "" {
		r.unprompted.Store(true)
	} else if err := r.writeTask(run.Request.Prompt); err != nil {
		_ = r.note(err)
	}
	if r.stdout, err = r.openOutput(stdoutName); err == nil {
		r.stderr, err = r.openOutput(stderrName)
	}
	if err == nil {
		r.events, err = r.openEvents()
	}
	if err != nil {
		r.discard(err)
		return nil, "", err
	}
	if prompt != "" && !run.Session { // a session reports each of its messages
		_ = r.events.add(&Event{Time: r.info.StartTime, Event: agent.Event{Kind: KindMessage, Text: prompt}, Attachments: agent.AttachmentInfos(run.Request.Attachments)}, r)
		r.events.flush()
	}
	if err := r.post(ctx, MessageStart, r.startText()); err != nil {
		_ = r.note(err)
	} else {
		r.announced = true
	}
	if err := r.problem; err != nil && s.Required {
		r.discard(err)
		return nil, "", err
	}
	return r, prompt, nil
}

// open makes and holds the folders of the run.
func (r *record) open(run *agent.Recordable) (prompt string, err error) {
	root, err := r.store.makeRoot(writable(run))
	if err != nil {
		return "", err
	}
	defer root.Close()
	err = within(root, r.info.ProjectID, func(project *statefile.Dir) error {
		return within(project, r.info.TaskID, func(task *statefile.Dir) error {
			return within(task, runsName, func(runs *statefile.Dir) (err error) {
				if r.taskFolder, err = project.Dir(r.info.TaskID); err == nil {
					prompt, err = r.settle(runs, run)
				}
				return err
			})
		})
	})
	return prompt, err
}

// within calls do with a folder. If it made the folder and do fails, it removes it.
func within(above *statefile.Dir, name string, do func(*statefile.Dir) error) error {
	made := above.Mkdir(name)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	folder, err := above.Dir(name)
	if err == nil {
		err = do(folder)
		folder.Close()
	}
	if err != nil && made == nil {
		_ = above.Remove(name)
	}
	return err
}

// closeFolders releases the folders.
func (r *record) closeFolders() {
	r.folder.Close()
	r.taskFolder.Close()
}

// settle gives the run its ID and its folder, which appears among the runs with prompt,
// Info and reserve in it: readers find it complete or not at all.
func (r *record) settle(runs *statefile.Dir, run *agent.Recordable) (prompt string, err error) {
	name := ""
	for range maxClashes {
		name = newPrefix + strconv.FormatUint(uint64(rand.Uint32()), 10)
		if err = r.taskFolder.Mkdir(name); !errors.Is(err, fs.ErrExist) {
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
			for _, file := range []string{promptName, infoName, reserveName} {
				_ = r.folder.Remove(file)
			}
			r.folder.Close()
			r.folder = nil
		}
		_ = r.taskFolder.Remove(name)
	}()
	if r.folder, err = r.taskFolder.Dir(name); err != nil {
		return "", err
	}
	if err = r.makeReserve(); err != nil {
		return "", err
	}
	for range maxClashes {
		r.info.RunID = newRunID(r.info.StartTime)
		r.setPaths(filepath.Join(r.task, runsName, r.info.RunID))
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
		if err = r.taskFolder.Move(name, runs, r.info.RunID); err == nil {
			r.folder.Named(r.dir)
		}
		if !errors.Is(err, fs.ErrExist) {
			return prompt, err
		}
	}
	return "", err
}

// maxClashes bounds the IDs that are tried: processes in other containers can have the
// same PID.
const maxClashes = 100

// setPaths sets the paths of the run.
func (r *record) setPaths(dir string) {
	r.dir = dir
	r.info.PromptPath = filepath.Join(dir, promptName)
	r.info.OutputPath = filepath.Join(dir, outputName)
	r.info.StdoutPath = filepath.Join(dir, stdoutName)
	r.info.StderrPath = filepath.Join(dir, stderrName)
	r.info.EventsPath, r.info.EventsVersion = filepath.Join(dir, eventsName), agent.EventsVersion
}

// newInfo returns the Info of a run before it starts.
func newInfo(run *agent.Recordable, labels agent.Labels) Info {
	return Info{
		Version:          infoVersion,
		ParentRunID:      labels.Parent,
		PreviousRunID:    labels.Previous,
		ProjectID:        labels.Project,
		TaskID:           labels.Task,
		Agent:            run.Start.Runtime,
		ProcessOwnership: "managed",
		// Until the agent runs, other readers judge the run by this process.
		PID:       os.Getpid(),
		PGID:      unix.Getpgrp(),
		StartTime: time.Now().UTC(),
		ExitCode:  -1,
		Status:    StatusRunning,
		CWD:       run.Start.Workdir,
		Owner:     process.Self(),
		Session:   run.Session,
		Model:     run.Start.Model,
		Access:    string(run.Request.Access),
	}
}

// infoVersion is the version of run-info.yaml.
const infoVersion = 1

// writeTask writes the prompt of the task unless it exists.
func (r *record) writeTask(prompt string) error {
	err := r.taskFolder.CreateFrom(taskName, strings.NewReader(r.mask.Text(prompt)+"\n"))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// firstMessage writes the prompt of a session that began without one.
func (r *record) firstMessage(text string) {
	r.noteAll(r.folder.ReplaceFrom(promptName, strings.NewReader(r.mask.Text(text)), false), r.writeTask(text))
}

// command sets the command line. A run writes it in started.
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

// note keeps the first problem, and returns err if the record is required.
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

// discard ends the record of a run that is not started.
func (r *record) discard(why error) {
	r.warn = func(string) {} // the caller warns
	_ = r.end(r.ctx, agent.Result{ExitCode: -1, Model: r.info.Model}, fmt.Errorf("nothing was started, because the run cannot be recorded: %w", why))
}
