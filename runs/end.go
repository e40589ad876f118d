package runs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// end records how the run ended. It returns an error only where the record is
// required and not whole. Waiting for locks, and reading and masking what the agent
// wrote, end with ctx.
func (r *record) end(ctx context.Context, result agent.Result, err error) error {
	defer r.closeFolders()
	if r.version != nil {
		r.info.AgentVersion = r.version()
	}
	r.finish(&result, err)
	r.noteAll(r.stdout.flush(), r.stderr.flush(), r.events.close(), r.writeAnswer(ctx, &result))
	if r.events != nil {
		r.info.ToolCalls = r.events.calls
	}
	if r.announced {
		if failure := r.post(ctx, r.endType(), r.endText()); failure != nil {
			_ = r.note(failure)
		}
	}
	r.noteAll(r.stdout.close(), r.stderr.close())
	if moved := r.moved(); moved != nil { // which is the reason for others
		r.problem = moved
	}
	if r.problem != nil {
		r.info.RecordProblem = r.mask.Text(r.problem.Error())
	}
	if failure := updateInfo(ctx, r.folder, &r.info); failure != nil {
		_ = r.note(failure)
	}
	if r.problem == nil {
		return nil
	}
	failure := fmt.Errorf("the record of run %s is not whole: %w", r.info.RunID, r.problem)
	if r.store.Required {
		return failure
	}
	r.warn(failure.Error())
	return nil
}

// noteAll notes those of errs that are errors.
func (r *record) noteAll(errs ...error) {
	for _, err := range errs {
		if err != nil {
			_ = r.note(err)
		}
	}
}

// versionWait is how long the end of a run waits for the version of its agent.
const versionWait = 2 * time.Second

// askVersion asks the agent's CLI for its version while ctx lasts. One that does not
// print it has none.
func (r *record) askVersion(ctx context.Context, ask func(context.Context) (string, error)) {
	ctx, cancel := context.WithCancel(ctx)
	answer := make(chan string, 1)
	go func() {
		version, _ := ask(ctx)
		answer <- version
	}()
	id := baseToken(r.info.Agent)
	r.version = func() string {
		defer cancel()
		late := time.AfterFunc(versionWait, cancel)
		defer late.Stop()
		version := <-answer // nothing of it is left then
		if version == "" {
			return ""
		}
		return id + " " + version
	}
}

func (r *record) endType() string {
	if r.info.Status == StatusCompleted {
		return MessageStop
	}
	return MessageCrash
}

// finish fills in how the run ended.
func (r *record) finish(result *agent.Result, err error) {
	info := &r.info
	info.EndTime = time.Now().UTC()
	info.ExitCode, info.Signal = exitCode(result), result.Signal
	info.SessionID = r.mask.Text(result.SessionID)
	if result.Model != "" {
		info.Model = r.mask.Text(result.Model)
	}
	if result.Usage != nil {
		usage := Usage(*result.Usage)
		info.Usage = &usage
	}
	for _, w := range result.Warnings {
		info.Warnings = append(info.Warnings, r.mask.Text(w))
	}
	if err == nil {
		info.Status = StatusCompleted
		return
	}
	info.Status = StatusFailed
	info.ErrorKind, info.Error = agent.KindOf(err), r.mask.Text(err.Error())
	info.ErrorSummary = summary(info.ExitCode, err)
}

// exitCode returns the exit code as a shell would tell it.
func exitCode(result *agent.Result) int {
	if number := unix.SignalNum(result.Signal); number != 0 {
		return 128 + int(number)
	}
	return result.ExitCode
}

// summary returns the error_summary of the Agent Protocol.
func summary(code int, err error) string {
	switch {
	case errors.Is(err, agent.ErrTimeout), errors.Is(err, agent.ErrIdleTimeout):
		return "timed out"
	case errors.Is(err, agent.ErrCanceled):
		return "canceled"
	}
	switch code {
	case -1:
		return "agent did not start"
	case 0:
		return "agent reported failure"
	case 1:
		return "agent reported failure"
	case 2:
		return "agent usage error"
	case 128 + int(unix.SIGKILL):
		return "agent killed (OOM or signal)"
	case 128 + int(unix.SIGTERM):
		return "agent terminated (SIGTERM)"
	}
	return fmt.Sprintf("agent exited with code %d", code)
}

// maxCommandLine bounds the command line of a record, in bytes.
const maxCommandLine = 8 << 10

// commandLine returns the agent's command as a shell would take it, without
// secrets.
func commandLine(path string, command agent.Command, promptPath string, mask *runner.Masker) string {
	words := []string{baseName(path)}
	for _, arg := range command.Args {
		words = append(words, shellWord(mask.Text(arg)))
	}
	line := strings.Join(words, " ")
	if len(line) > maxCommandLine {
		line = strings.ToValidUTF8(line[:maxCommandLine], "") + "…"
	}
	if command.Stdin != "" {
		line += " < " + shellWord(promptPath)
	}
	return line
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// shellWord returns word as a shell takes it for one.
func shellWord(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:=,@%+", c)
	}
	if word != "" && !strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// baseToken returns the ID of a runtime token, without its variant.
func baseToken(token string) string {
	id, _, _ := strings.Cut(token, ":")
	return id
}
