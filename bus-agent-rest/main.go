// Command bus-agent-rest sends a prompt to an OpenAI-compatible chat/completions
// endpoint and streams the answer as lines of JSON. It reads the prompt from
// standard input and writes to standard output. It has no tools: it reads no files
// and runs no programs.
//
//	bus-agent-rest [--provider openai|perplexity|xai] [flags] < prompt
//
// The provider openai covers any compatible endpoint, such as a model server on
// the local machine. The flags:
//
//	--provider NAME      openai (default), perplexity or xai
//	--base-url URL       the endpoint, its parent path or its host
//	--model NAME         the model
//	--token-env NAME     the variable that holds the token; empty sends none
//	--idle-timeout TIME  how long the server may send nothing during a request; 0 means no limit
//	--timeout TIME       how long the whole run may take; 0 means no limit
//	--retries N          how often to repeat a failed request, 0 to 100 (default 5)
//	--access ACCESS      read or write (default); reported in the output only
//	--version, --help
//
// # Environment
//
// The token is read from the environment only: PERPLEXITY_API_KEY, XAI_API_KEY or
// OPENAI_API_KEY. It is optional, except at the provider's default host. Without
// the flag, the base URL and the model come from the first of these that is set:
//
//	openai      OPENAI_BASE_URL, OPENAI_API_BASE; OPENAI_MODEL
//	perplexity  PERPLEXITY_BASE_URL; PERPLEXITY_MODEL
//	xai         XAI_API_ENDPOINT, XAI_BASE_URL, XAI_API_BASE; XAI_MODEL
//
// HTTPS_PROXY, HTTP_PROXY and NO_PROXY have their usual meaning.
//
// # Output
//
// Each line is a JSON object with a "type". Empty members are omitted. Readers
// should ignore unknown types and members.
//
//	{"type":"start","agent":"bus-agent-rest","provider":P,"model":M,"access":A,"endpoint":URL}
//	{"type":"answer","id":ID,"model":M}          the server began to answer with model M
//	{"type":"thinking","text":T}                 the next part of the model's thinking
//	{"type":"text","text":T}                     the next part of the answer
//	{"type":"retry","text":WHY,"attempt":N,"max_attempts":N,"wait_seconds":S,"status":N,"failure":F}
//	{"type":"warning","text":T}
//	{"type":"usage","input":N,"cached":N,"output":N,"reasoning":N,"cost_usd":X}  of all attempts
//	{"type":"result","text":T,"citations":[URL],"finish_reason":R}
//	{"type":"result","error":WHY,"failure":F,"status":N}
//
// The first line is start and the last is result. A result with "error" is a
// failure, any other is a success; F is "authentication", "quota", "idle_timeout" or
// omitted. The text of a result is the whole answer; it is omitted if longer than
// 1 MiB. If the server names its sources, the answer ends with a list of them, numbered
// from 1. Usage is reported after failures too, if the server sent it.
//
// The exit code is 0 on success and 1 on failure. It is 2 if the flags, the
// environment or the prompt are invalid; then standard error has the reason, and
// standard output is empty.
//
// # Failures
//
// A stream that ends without an end marker is a failure, and so is an answer cut
// by a token limit or a content filter. A refusal is a failure whose reason is the text
// of the answer. Status 408, 429, 5xx and network errors are retried until part of the
// answer has arrived, after the time in Retry-After-Ms or Retry-After, or else 1, 2, 4 …
// 32 seconds plus up to 50% jitter. A time of more than two minutes is a failure.
// Redirects are followed within the same host only, so prompt and token are never sent
// to another one.
//
// Any byte of the server ends its idle time, a keepalive comment too. Waiting for the
// next attempt or for the reader of the output does not count. After the end of an
// answer the server has five seconds to send usage and sources, and need not close the
// connection. The error of a timeout names the failure before it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// The exit codes.
const (
	exitSuccess = 0
	exitFailure = 1
	exitUsage   = 2
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version string

func main() {
	os.Exit(run(untilSignal, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// exitGrace is how long the program may take to write its last lines after a signal.
const exitGrace = time.Second

// untilSignal returns a context that is canceled by SIGTERM, SIGINT or SIGHUP. The
// program exits within exitGrace of the signal, even if standard output is blocked.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	context.AfterFunc(ctx, func() {
		stop()
		time.AfterFunc(exitGrace, func() { os.Exit(exitFailure) })
	})
	return ctx, stop
}

// run is main with its environment as arguments. It calls newContext once the
// prompt has been read: until then, a signal simply kills the program.
func run(newContext func() (context.Context, context.CancelFunc), args []string, getenv func(string) string,
	stdin io.Reader, stdout, stderr io.Writer) int {
	usageError := func(err error) int {
		fmt.Fprintf(stderr, "bus-agent-rest: %v; nothing was sent\n", err)
		return exitUsage
	}
	s, err := parseSettings(args, getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage())
		return exitSuccess
	case errors.Is(err, errVersion):
		fmt.Fprintln(stdout, "bus-agent-rest", programVersion())
		return exitSuccess
	case err != nil:
		return usageError(err)
	}
	prompt, err := io.ReadAll(stdin)
	switch {
	case err != nil:
		return usageError(fmt.Errorf("cannot read standard input: %w", err))
	case len(bytes.TrimSpace(prompt)) == 0:
		return usageError(errors.New("standard input contains no prompt"))
	}
	ctx, stop := newContext()
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &output{to: stdout, token: s.token, fail: cancel}
	ok := newConversation(s, out).run(ctx, string(prompt))
	if out.err != nil {
		fmt.Fprintf(stderr, "bus-agent-rest: cannot write standard output: %v\n", out.err)
	}
	if !ok || out.err != nil {
		return exitFailure
	}
	return exitSuccess
}

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v, ok := strings.CutPrefix(info.Main.Version, "v"); ok {
			return v
		}
	}
	return "0.0.0-devel"
}
