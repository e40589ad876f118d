package runs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/unix"
	"github.com/busdk/bus-agent/runner"
)

// end records the end of the run. It returns an error only if the record is required
// and incomplete. Waiting for locks and masking output.md end with ctx.
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
	message := r.endText()
	r.noteAll(r.stdout.close(), r.stderr.close())
	if moved := r.moved(); moved != nil { // the cause of other errors
		r.problem = moved
	}
	// A reader of the message finds the end in the record.
	r.writeEnd(ctx)
	if r.announced {
		whole := r.problem == nil
		if failure := r.post(ctx, r.endType(), message); failure != nil {
			if _ = r.note(failure); whole {
				r.writeEnd(ctx)
			}
		}
	}
	r.dropReserve()
	if r.problem == nil {
		return nil
	}
	failure := fmt.Errorf("the record of run %s is incomplete: %w", r.info.RunID, r.problem)
	if r.store.Required {
		return failure
	}
	r.warn(failure.Error())
	return nil
}

// noteAll notes the errors in errs.
func (r *record) noteAll(errs ...error) {
	for _, err := range errs {
		if err != nil {
			_ = r.note(err)
		}
	}
}

// versionWait is how long the end of a run waits for the version of its agent.
const versionWait = 2 * time.Second

// askVersion starts to ask the agent's CLI for its version, until ctx ends.
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
		version := <-answer // its process has ended then
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

// maxReported bounds the session ID and the model of a record, in bytes.
const maxReported = 1 << 10

// finish sets the fields of the end of the run.
func (r *record) finish(result *agent.Result, err error) {
	info := &r.info
	info.EndTime = time.Now().UTC()
	info.ExitCode, info.Signal = exitCode(result), result.Signal
	// Agents report them, and a record is limited.
	info.SessionID = cutText(r.mask.Text(result.SessionID), maxReported)
	if result.Model != "" {
		info.Model = cutText(r.mask.Text(result.Model), maxReported)
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
	info.ErrorSummary = r.mask.Text(summary(info.ExitCode, err))
}

// maxSummary bounds the error_summary, in bytes.
const maxSummary = 200

// exitCode returns the exit code as a shell reports it.
func exitCode(result *agent.Result) int {
	if number := unix.SignalNum(result.Signal); number != 0 {
		return 128 + int(number)
	}
	return result.ExitCode
}

// Summaries that readers know.
const summaryTimeout, summaryCanceled = "timed out", "canceled"

// summary returns the error_summary of the Agent Protocol.
func summary(code int, err error) string {
	switch {
	case errors.Is(err, agent.ErrTimeout), errors.Is(err, agent.ErrIdleTimeout):
		return summaryTimeout
	case errors.Is(err, agent.ErrCanceled):
		return summaryCanceled
	}
	switch code {
	case -1:
		return "agent did not start"
	case 0:
		if _, ok := errors.AsType[*agent.ExitError](err); !ok { // its answer was refused
			return cutText(err.Error(), maxSummary)
		}
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

// commandLine returns the agent's command in shell syntax, without secrets.
func commandLine(path string, command agent.Command, promptPath string, mask *runner.Masker) string {
	words := []string{filepath.Base(path)}
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

// shellWord returns word quoted for a shell.
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
