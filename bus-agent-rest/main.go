// Command bus-agent-rest is an agent for a model behind an HTTP interface: it
// reads a prompt from standard input, asks an OpenAI-compatible chat/completions
// endpoint, and writes what comes as lines of JSON on standard output. It has no
// tools: it reads no file and runs nothing.
//
//	bus-agent-rest --provider perplexity|xai|openai [flags] < prompt
//
// openai stands for any endpoint of that kind, a model server on this machine
// included. The flags:
//
//	--provider NAME      perplexity, xai or openai, which is the default
//	--base-url URL       the endpoint, or the address it is at
//	--model NAME         the model
//	--token-env NAME     the variable that holds the token; empty is no token
//	--idle-timeout TIME  the longest silence of the server; 0 is any
//	--timeout TIME       the longest time in all; 0 is any
//	--retries N          how often a request is tried again
//	--access WORD        what the caller allows, read or write; only written down
//	--version, --help
//
// # Environment
//
// The token comes from the environment alone, never from a flag or file:
// PERPLEXITY_API_KEY, XAI_API_KEY or OPENAI_API_KEY. A local server needs none.
// What no flag says is taken from the first of these that is set:
//
//	perplexity  PERPLEXITY_BASE_URL; PERPLEXITY_MODEL
//	xai         XAI_API_ENDPOINT, XAI_BASE_URL, XAI_API_BASE; XAI_MODEL
//	openai      OPENAI_BASE_URL, OPENAI_API_BASE; OPENAI_MODEL
//
// HTTPS_PROXY, HTTP_PROXY and NO_PROXY count as usual.
//
// # Output
//
// Each line is an object with a "type". Members that have nothing to say are left
// out, and a reader ignores types and members it does not know.
//
//	{"type":"start","agent":"bus-agent-rest","provider":P,"model":M,"access":A,"endpoint":URL}
//	{"type":"answer","id":ID,"model":M}          the server answers; M is the model it names
//	{"type":"thinking","text":T}                 T continues what the model thinks
//	{"type":"text","text":T}                     T continues the answer
//	{"type":"retry","text":WHY,"attempt":N,"max_attempts":N,"wait_seconds":S,"status":N,"failure":F}
//	{"type":"warning","text":T}
//	{"type":"usage","input":N,"cached":N,"output":N,"reasoning":N,"cost_usd":X}
//	{"type":"result","text":T,"citations":[URL],"finish_reason":R}
//	{"type":"result","error":WHY,"failure":F,"status":N}
//
// start is the first line and result the last. A result with "error" is a failure
// and any other a success; F is "authentication", "quota" or left out. The text of
// a result is the whole answer, unless that has more than 1 MiB. Where the server
// names its sources, the answer ends with a list of them, numbered from 1.
//
// The exit code is 0 after a success, 1 after a failure, and 2 with a message on
// standard error, without any line, when the flags, the environment or the prompt
// are wrong.
//
// # Failures
//
// A stream that ends before the server says that the answer is over, and an
// answer that was cut by a limit of tokens or by a filter, are failures. 408, 429,
// 5xx and a broken connection are tried again until something of the answer has
// arrived, after the time that Retry-After names, else after 1, 2, 4 … 32 seconds
// and up to half as much again. A redirection is followed to the same host only,
// so that prompt and token go nowhere else.
package main

import (
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
	// Until the prompt is read nothing is lost by a signal.
	prompt := func() (string, error) {
		text, err := io.ReadAll(os.Stdin)
		return string(text), err
	}
	os.Exit(run(untilSignal, os.Args[1:], os.Getenv, prompt, os.Stdout, os.Stderr))
}

// patience is how long a reader of standard output may hold up the end.
const patience = time.Second

// untilSignal returns a context that ends at a signal, and the program soon after
// it, whatever it waits for.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	context.AfterFunc(ctx, func() {
		stop()
		time.AfterFunc(patience, func() { os.Exit(exitFailure) })
	})
	return ctx, stop
}

// run is the program.
func run(begin func() (context.Context, context.CancelFunc), args []string, getenv func(string) string,
	readPrompt func() (string, error), stdout, stderr io.Writer) int {
	wrong := func(err error) int {
		fmt.Fprintf(stderr, "bus-agent-rest: %v; nothing was sent\n", err)
		return exitUsage
	}
	s, err := settle(args, getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage())
		return exitSuccess
	case errors.Is(err, errVersion):
		fmt.Fprintln(stdout, "bus-agent-rest", programVersion())
		return exitSuccess
	case err != nil:
		return wrong(err)
	}
	prompt, err := readPrompt()
	switch {
	case err != nil:
		return wrong(fmt.Errorf("standard input cannot be read: %w", err))
	case strings.TrimSpace(prompt) == "":
		return wrong(errors.New("standard input holds no prompt"))
	}
	ctx, stop := begin()
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &output{to: stdout, token: s.token, fail: cancel}
	failed := newConversation(s, out).hold(ctx, prompt)
	if out.err != nil {
		fmt.Fprintf(stderr, "bus-agent-rest: standard output cannot be written: %v\n", out.err)
		return exitFailure
	}
	if failed {
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
