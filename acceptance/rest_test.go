//go:build acceptance

package acceptance

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

// The build tag adds three runtimes, which are detected if bus-agent-rest is in PATH.
func TestRESTBuildTag(t *testing.T) {
	t.Parallel()
	w := newREST(t, modeltest.Replies(), nil)
	if got := w.mustExec("", "detect"); got != "openai\nperplexity\nxai\n" {
		t.Errorf("detect finds %q", got)
	}
	w.env = append(w.env, "PATH=/usr/bin:/bin")
	if o := w.exec("hello", "run", "--agent", "xai", "--prompt", "-"); o.code != 1 || !strings.Contains(o.stderr, "github.com/busdk/bus-agent/bus-agent-rest") {
		t.Errorf("without the program: %v", o)
	}
	w.program = ""
	if o := w.exec("hello", "run", "--agent", "xai", "--prompt", "-"); o.code != 2 || !strings.Contains(o.stderr, "build with -tags rest, or import github.com/busdk/bus-agent/backends/xai") {
		t.Errorf("without the tag: %v", o)
	}
}

func TestRESTGetsWholePrompt(t *testing.T) {
	t.Parallel()
	testPrompts(t, newREST, prompts())
}

func TestRESTGetsEachAgentsMDOnce(t *testing.T) {
	t.Parallel()
	for workdir, want := range map[string][]string{".": {rootMark}, "services": {rootMark, midMark}, "services/a": {rootMark, midMark, deepMark}} {
		t.Run(workdir, func(t *testing.T) {
			t.Parallel()
			w := newREST(t, modeltest.Replies(answer("ok")), layered())
			r, o := w.run("hello", "--workdir", filepath.Join(w.repo, workdir))
			w.wantAnswer("ok", r, o)
			request := w.wantRequests(1)[0]
			checkMarks(t, request, want...)
			if texts := request.Texts("user"); len(texts) != 1 || !strings.HasSuffix(texts[0], "\nhello") {
				t.Errorf("the model got %q", texts)
			}
		})
	}
}

func TestRESTGetsWholeLongAgentsMD(t *testing.T) {
	t.Parallel()
	testLongInstructions(t, newREST)
}

// Files in the repository have no effect.
func TestRESTIgnoresRepositoryFiles(t *testing.T) {
	t.Parallel()
	const elsewhere = "OPENAI_BASE_URL=http://127.0.0.1:9\nOPENAI_API_KEY=stolen\nOPENAI_MODEL=stolen\n"
	w := newREST(t, modeltest.Replies(answer("ok")), map[string]string{".env": elsewhere, ".bus-agent-rest": elsewhere, "bus-agent-rest": "#!/bin/sh\ntouch pwned\n"})
	r, o := w.run("hello", "--access", "read")
	w.wantAnswer("ok", r, o)
	if request := w.wantRequests(1)[0]; request.Header.Get("Authorization") != "Bearer sk-acceptance" || request.Model() != w.modelID {
		t.Errorf("the model got %v", request.Header)
	}
	if o := w.exec("hello", "run", "--agent", "openai", "--access", "full", "--prompt", "-"); o.code != 2 || !strings.Contains(o.stderr, "access") {
		t.Errorf("access full is accepted: %v", o)
	}
}

func TestRESTAnswers(t *testing.T) {
	t.Parallel()
	w := newREST(t, modeltest.Always(modeltest.Reply{
		modeltest.Thinking{"hm", ", well"}, modeltest.Text{"It is ", "blue."}, modeltest.Usage{Input: 1000, Cached: 100, Output: 50, Reasoning: 7},
	}), nil)
	r, o := w.run("what colour?")
	w.wantAnswer("It is blue.", r, o)
	if diff := cmp.Diff(&agent.Usage{Input: 1000, Cached: 100, Output: 50, Reasoning: 7}, r.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if r.Runtime != "openai" || r.Model != w.modelID || w.wantRequests(1)[0].Model() != w.modelID {
		t.Errorf("runtime %s, model %s", r.Runtime, r.Model)
	}
	text := w.exec("what colour?", "run", "--agent", "openai", "--model", "m", "--prompt", "-")
	if text.stdout != "It is blue.\n" || !strings.Contains(text.stderr, "[thinking] hm, well") {
		t.Errorf("as text: %v", text)
	}
	raw := w.exec("what colour?", "run", "--agent", "openai", "--model", "m", "--prompt", "-", "--output-format", "ndjson")
	if formatted := w.mustExec(raw.stdout, "format"); !strings.HasSuffix(formatted, "It is blue.\n") {
		t.Errorf("formatted: %q of\n%s", formatted, raw.stdout)
	}
}

func TestRESTFailures(t *testing.T) {
	t.Parallel()
	status := func(code int, message string) modeltest.Reply {
		return modeltest.Reply{modeltest.HTTPError{Status: code, Message: message, Header: http.Header{"Retry-After": {"0"}}}}
	}
	testFailures(t, newREST, map[string]failure{
		"401":               {reply: status(http.StatusUnauthorized, "the key sk-acceptance is refused"), kind: "authentication", says: "the key *** is refused", asked: 1},
		"400":               {reply: status(http.StatusBadRequest, "what is this?"), kind: "agent", says: "400 Bad Request: what is this?", asked: 1},
		"429":               {reply: status(http.StatusTooManyRequests, "slow down"), kind: "quota", says: "slow down (6 attempts)", asked: 6},
		"500":               {reply: status(http.StatusInternalServerError, "boom"), kind: "agent", says: "boom (6 attempts)", asked: 6},
		"cut in the middle": {reply: modeltest.Reply{modeltest.Text{"half an ans"}, modeltest.Cut{}}, kind: "agent", says: "cut off", asked: 1, text: "half an ans"},
		"error of a stream": {reply: modeltest.Reply{modeltest.Text{"half"}, modeltest.Fail{Code: "server_error", Message: "boom"}}, kind: "agent", says: "boom", asked: 1, text: "half"},
		"empty answer":      {reply: nil, kind: "agent", says: "the answer is empty", asked: 1},
		"a tool":            {reply: modeltest.Reply{modeltest.ToolCall{Name: "shell", Arguments: "{}"}}, kind: "agent", says: "called a tool", asked: 1},
		"no headers":        {reply: modeltest.Reply{modeltest.Silence{}}, args: []string{"--timeout", "3s"}, kind: "timeout", says: "within 3s", asked: 1},
		"silent stream":     {reply: modeltest.Reply{modeltest.Text{"half"}, modeltest.Silence{}}, args: []string{"--idle-timeout", "3s"}, kind: "idle_timeout", says: "sent nothing for too long: the limit is 3s", asked: 1, text: "half"},
	})
}

// Requests to a busy server are retried, with retry events.
func TestRESTRecovers(t *testing.T) {
	t.Parallel()
	busy := modeltest.Reply{modeltest.HTTPError{Status: 503, Message: "loading the model", Header: http.Header{"Retry-After": {"0"}}}}
	w := newREST(t, modeltest.Replies(busy, modeltest.Reply{modeltest.Cut{}}, answer("here I am")), nil)
	o := w.exec("hello", "run", "--agent", "openai", "--model", "m", "--prompt", "-", "--output-format", "events")
	var kinds []agent.Kind
	for _, e := range events(t, o) {
		kinds = append(kinds, e.Kind)
	}
	want := []agent.Kind{agent.KindSessionStarted, agent.KindRetry, agent.KindRetry, agent.KindSessionStarted, agent.KindText, agent.KindUsage, agent.KindResult}
	if !slices.Equal(kinds, want) {
		t.Errorf("events %v\n%v", kinds, o)
	}
	w.wantRequests(3)
}

// A wait that the server asked for is not idle time, a timeout names the failure before
// it, and a refused token is not a matter of a login.
func TestRESTWaits(t *testing.T) {
	t.Parallel()
	busy := modeltest.Reply{modeltest.HTTPError{Status: 503, Message: "loading the model", Header: http.Header{"Retry-After": {"3"}}}}
	w := newREST(t, modeltest.Replies(busy, answer("here I am")), nil)
	r, o := w.run("hello", "--idle-timeout", "2s")
	w.wantAnswer("here I am", r, o)
	silent := modeltest.Reply{modeltest.Silence{}}
	for limit, says := range map[string]string{"--timeout": "no result within 5s", "--idle-timeout": "the server sent nothing for too long: the limit is 5s"} {
		w = newREST(t, modeltest.Replies(busy, silent), nil)
		o = w.exec("hello", "run", "--agent", "openai", "--model", "m", "--prompt", "-", limit, "5s")
		if o.code != 1 || !strings.Contains(o.stderr, says) || !strings.Contains(o.stderr, "last failure: the server returned 503 Service Unavailable: loading the model") {
			t.Errorf("%s: %v", limit, o)
		}
	}
	w = newREST(t, modeltest.Always(modeltest.Reply{modeltest.HTTPError{Status: 401, Message: "no"}}), nil)
	o = w.exec("hello", "run", "--agent", "openai", "--model", "m", "--prompt", "-")
	if o.code != 1 || !strings.Contains(o.stderr, "set OPENAI_API_KEY to a valid token") || strings.Contains(o.stderr, "CLI") {
		t.Errorf("a refused token: %v", o)
	}
}

func TestRESTInterrupted(t *testing.T) {
	t.Parallel()
	w := newREST(t, modeltest.Always(modeltest.Reply{modeltest.Text{"half"}, modeltest.Silence{}}), nil)
	ctx, cancel := context.WithTimeout(t.Context(), w.limit)
	defer cancel()
	before := w.snapshot()
	cmd, stdout, stderr := w.start(ctx, "hello", "run", "--agent", "openai", "--model", "m", "--format", "json", "--prompt", "-")
	if _, err := w.model.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	interrupt(t, cmd)
	err := cmd.Wait()
	var r report
	if jsonErr := json.Unmarshal(stdout.Bytes(), &r); err == nil || jsonErr != nil || r.Kind != "canceled" {
		t.Errorf("ended with %v, %v\n%s\n%s", err, jsonErr, stdout, stderr)
	}
	w.checkNothingLeft(before)
}

// Each runtime has its own variables, path and model.
func TestRESTServices(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ runtime, address, key, path, model string }{
		{"perplexity", "PERPLEXITY_BASE_URL={url}", "PERPLEXITY_API_KEY", "/chat/completions", "sonar-reasoning"},
		{"perplexity", "PERPLEXITY_BASE_URL={url}/proxy/chat/completions", "PERPLEXITY_API_KEY", "/proxy/chat/completions", "sonar-reasoning"},
		{"xai", "XAI_API_ENDPOINT={url}", "XAI_API_KEY", "/v1/chat/completions", "grok-4"},
		{"xai", "XAI_BASE_URL={url}/v1", "XAI_API_KEY", "/v1/chat/completions", "grok-4"},
		{"openai", "OPENAI_BASE_URL={url}/v1", "OPENAI_API_KEY", "/v1/chat/completions", ""},
	} {
		w := newREST(t, modeltest.Always(answer("ok")), nil)
		w.env = []string{w.env[0], c.key + "=sk-acceptance", strings.ReplaceAll(c.address, "{url}", w.model.URL())}
		w.agent = c.runtime
		o := w.exec("hello", "run", "--agent", c.runtime, "--prompt", "-")
		if o.code != 0 || o.stdout != "ok\n" {
			t.Fatalf("%s: %v", c.runtime, o)
		}
		request := w.wantRequests(1)[0]
		if request.Path != c.path || request.Model() != c.model || request.Header.Get("Authorization") != "Bearer sk-acceptance" {
			t.Errorf("%s: request to %s for model %q", c.address, request.Path, request.Model())
		}
		w.env = w.env[:1]
		if c.runtime != "openai" {
			if o := w.exec("hello", "run", "--agent", c.runtime, "--prompt", "-"); o.code != 1 || !strings.Contains(o.stderr, c.key) {
				t.Errorf("without a token: %v", o)
			}
		}
	}
}

// The definition and the commands on the page work.
func TestRESTPage(t *testing.T) {
	t.Parallel()
	w := newREST(t, modeltest.Always(answer("ok")), nil)
	page, err := os.ReadFile("../docs/runtimes/rest.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), "http://127.0.0.1:11434", w.model.URL())
	definition := regexp.MustCompile("(?s)\n```json\n(.*?)```").FindStringSubmatch(text)
	commands := regexp.MustCompile(`(?m)^    ((?:[A-Z_]+=|bus-agent|echo).*)$`).FindAllStringSubmatch(text, -1)
	if definition == nil || len(commands) != 4 {
		t.Fatalf("the page has %d commands and the definition %q", len(commands), definition)
	}
	scratch := t.TempDir()
	writeFiles(t, scratch, map[string]string{"local-model.json": definition[1]})
	for _, c := range commands {
		shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", c[1])
		shell.Dir = scratch
		shell.Env = append(w.environ(), w.env[0]+string(os.PathListSeparator)+filepath.Dir(w.program), "OPENAI_API_KEY=")
		out, err := shell.CombinedOutput()
		if err != nil || !strings.Contains(c[1], " set ") && !strings.Contains(string(out), "ok") {
			t.Errorf("%s: %v\n%s", c[1], err, out)
		}
	}
	for _, request := range w.wantRequests(3) {
		if request.Model() != "qwen3" || request.Header.Get("Authorization") != "" {
			t.Errorf("model %q, header %v", request.Model(), request.Header)
		}
	}
}
