package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/busdk/bus-agent/jsonline"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

// A copy of the test binary called bus-agent-otel is the program. The file name decides,
// because the background process of a session has another argv[0].
func TestMain(m *testing.M) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if filepath.Base(self) == "bus-agent-otel" {
		os.Exit(run(context.Background()))
	}
	os.Exit(m.Run())
}

const (
	secret  = "sk-of-the-agent"
	header  = "pass-of-the-collector"
	parent  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
)

// stubAgent calls a tool and prints its key and its parent span.
const stubAgent = `#!/bin/sh
while read -r line; do :; done
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"env","aggregated_output":"","status":"in_progress"}}'
echo '{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"env","aggregated_output":"'"$CODEX_API_KEY"'","exit_code":0,"status":"completed"}}'
echo '{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"Parent: '"$TRACEPARENT"'."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":7,"cached_input_tokens":0,"output_tokens":3}}'
`

// stubConversation calls a tool in each turn.
const stubConversation = `#!/bin/sh
session='"session_id":"281e2dea-4e55-40f3-a8df-7cc6631ae1db"'
n=0
while read -r line; do
	case $line in
	*'"control_request"'*)
		id=${line#*\"request_id\":\"}
		echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"${id%%\"*}"'","response":{}}}' ;;
	*'"type":"user"'*)
		n=$((n + 1))
		echo '{"type":"system","subtype":"init",'$session',"model":"stub-1","tools":[]}'
		echo '{"type":"assistant","message":{"id":"a'$n'","role":"assistant","content":[{"type":"tool_use","id":"t'$n'","name":"Look","input":{}}]},'$session'}'
		echo '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t'$n'","content":"a"}]},'$session'}'
		echo '{"type":"assistant","message":{"id":"b'$n'","role":"assistant","content":[{"type":"text","text":"Answer '$n'."}]},'$session'}'
		echo '{"type":"result","subtype":"success","is_error":false,"result":"Answer '$n'.",'$session',"modelUsage":{"stub-1":{"inputTokens":'$n',"outputTokens":'$n'}}}' ;;
	esac
done
`

// An outcome is the result of running the program.
type outcome struct {
	stdout, stderr string
	code           int
}

// An installation is the program with stub agents next to it.
type installation struct {
	t                    *testing.T
	bin, home, directory string
	environ              []string
}

func newInstallation(t *testing.T, environ ...string) *installation {
	t.Helper()
	p := &installation{t: t, bin: t.TempDir(), home: t.TempDir(), directory: t.TempDir(), environ: environ}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(p.bin, "bus-agent-otel")
	if os.Link(self, program) != nil { // on another file system
		if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for name, script := range map[string]string{"codex": stubAgent, "claude": stubConversation} {
		if err := os.WriteFile(filepath.Join(p.bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// run runs the program.
func (p *installation) run(args ...string) outcome {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(p.bin, "bus-agent-otel"), args...)
	c.Dir = p.directory
	c.Env = append([]string{"PATH=" + p.bin, "HOME=" + p.home, "GORACE=atexit_sleep_ms=0", "CODEX_API_KEY=" + secret}, p.environ...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if c.ProcessState == nil || ctx.Err() != nil {
		p.t.Fatalf("%v: %v\n%s", args, err, stderr.String())
	}
	return outcome{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

var runAgent = []string{"run", "--agent", "codex", "--text", "the prompt"}

func TestRunIsExported(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	got := newInstallation(t,
		"OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20"+header,
		"OTEL_RESOURCE_ATTRIBUTES=team=red", "TRACEPARENT="+parent,
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true",
	).run(runAgent...)
	c.mu.Lock()
	defer c.mu.Unlock()

	run := c.span(t, "invoke_agent codex")
	id := hex.EncodeToString(run.SpanId)
	if want := "Parent: 00-" + traceID + "-" + id + "-01.\n"; got.code != 0 || got.stdout != want {
		t.Errorf("exit code %d, the output is %q, want %q\n%s", got.code, got.stdout, want, got.stderr)
	}
	if hex.EncodeToString(run.TraceId) != traceID || hex.EncodeToString(run.ParentSpanId) != "00f067aa0ba902b7" {
		t.Errorf("the run is not in the trace of the environment: %v", run)
	}
	for key, want := range map[string]string{
		"gen_ai.provider.name": "openai", "gen_ai.conversation.id": "t-1",
		"gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "3",
		"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"the prompt"}]}]`,
	} {
		if got := attributes(run.Attributes)[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	tool := c.span(t, "execute_tool command")
	if !bytes.Equal(tool.ParentSpanId, run.SpanId) || attributes(tool.Attributes)["gen_ai.tool.call.result"] != "***" {
		t.Errorf("the tool call is %v", tool)
	}
	for _, name := range []string{"gen_ai.client.token.usage", "gen_ai.client.operation.duration"} {
		if c.metrics[name] == nil || len(c.metrics[name].GetHistogram().GetDataPoints()) != 2 {
			t.Errorf("the metric %s is %v, want two points", name, c.metrics[name])
		}
	}
	for _, r := range c.resources {
		a := attributes(r.Attributes)
		if a["service.name"] != "bus-agent" || a["team"] != "red" || a["service.instance.id"] == "" || a["service.version"] == "" {
			t.Errorf("the resource is %v", a)
		}
	}
	for i, body := range c.bodies {
		for _, word := range []string{secret, header} {
			if bytes.Contains(body, []byte(word)) {
				t.Errorf("%q occurs in %q", word, body)
			}
		}
		if got := c.headers[i].Get("Authorization"); got != "Bearer "+header {
			t.Errorf("the header is %q", got)
		}
	}
	if len(c.resources) != 2 || len(c.problems) > 0 || strings.Contains(got.stderr, "telemetry") {
		t.Errorf("%d requests, want 2; %v\n%s", len(c.resources), c.problems, got.stderr)
	}
}

// The program waits for a collector no longer than FlushLimit.
// A run whose answer does not follow the schema has failed in its span too.
func TestAnswerThatDoesNotFollowTheSchemaIsExported(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	p := newInstallation(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
	schema := filepath.Join(p.directory, "schema.json")
	if err := os.WriteFile(schema, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := p.run(append(runAgent[:len(runAgent):len(runAgent)], "--schema", schema)...)
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := 0
	for _, s := range c.spans {
		if s.Name != "invoke_agent codex" {
			continue
		}
		if failed++; attributes(s.Attributes)["error.type"] != "agent" || s.Status.GetCode() != trace.Status_STATUS_CODE_ERROR {
			t.Errorf("a run ended with %v, %v", s.Status, attributes(s.Attributes)["error.type"])
		}
	}
	if got.code != 1 || failed != 2 {
		t.Errorf("exit code %d, %d runs\n%s", got.code, failed, got.stderr)
	}
}

func TestCollectorHangs(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	got := newInstallation(t,
		"OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_EXPORTER_OTLP_HEADERS=authorization="+header,
		"OTEL_EXPORTER_OTLP_TIMEOUT=600000", "OTEL_BSP_EXPORT_TIMEOUT=600000", "OTEL_METRIC_EXPORT_TIMEOUT=600000",
	).run(runAgent...)
	wantRun(t, got, true)
	if strings.Contains(got.stderr, header) {
		t.Errorf("standard error has a secret: %s", got.stderr)
	}
}

// A collector that fails is a warning.
func TestCollectorFails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no, "+header, http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, url := range map[string]string{"refuses": server.URL, "not running": gone.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newInstallation(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+url, "OTEL_EXPORTER_OTLP_HEADERS=authorization="+header).run(runAgent...)
			wantRun(t, got, true)
			if strings.Contains(got.stderr, header) {
				t.Errorf("standard error has a secret: %s", got.stderr)
			}
		})
	}
}

// The response of the collector becomes one short, printable warning.
func TestHostileCollector(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"control characters": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "\x1b[2J\x1b]0;title\x07\u009b31m\u202e\x7f\xff\nbus-agent: forged", http.StatusBadRequest)
		},
		"a long response": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("a", 1<<20), http.StatusBadRequest)
		},
		"an endless response": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
		"a compressed response of 1 GiB": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 1 << 10 {
				if _, err := z.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
			_ = z.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			got := newInstallation(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL).run(runAgent...)
			wantRun(t, got, true)
			wantPrintable(t, got.stderr)
		})
	}
}

// wantPrintable checks that text is short and printable.
func wantPrintable(t *testing.T, text string) {
	t.Helper()
	if len(text) > 10_000 || !utf8.ValidString(text) || strings.ContainsFunc(text, jsonline.IsControl) || strings.Contains(text, "\nbus-agent: forged") {
		t.Errorf("standard error is %d bytes: %.2000q", len(text), text)
	}
}

// A redirect would send the headers, which contain keys, to another host.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(other.Close)
	for _, code := range []int{http.StatusSeeOther, http.StatusTemporaryRedirect} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, code))
		t.Cleanup(server.Close)
		got := newInstallation(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key="+header).run(runAgent...)
		wantRun(t, got, true)
		if reached.Load() || !strings.Contains(got.stderr, "redirects") {
			t.Errorf("%d: the other host was reached: %t, %s", code, reached.Load(), got.stderr)
		}
	}
}

// An invalid variable is a warning, which does not contain secrets.
func TestHostileVariables(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, variable := range []string{
		"OTEL_BSP_MAX_QUEUE_SIZE=-1", "OTEL_BSP_MAX_QUEUE_SIZE=99999999999999",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/dev/zero", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE=" + pipe,
		"OTEL_EXPORTER_OTLP_CLIENT_KEY=" + pipe, "OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE=/dev/zero",
		"OTEL_EXPORTER_OTLP_HEADERS=x-key=%zz" + header, "OTEL_EXPORTER_OTLP_HEADERS=\x1b[2J" + header,
		"OTEL_TRACES_EXPORTER=\x1b[2J\u202e", "OTEL_RESOURCE_ATTRIBUTES=a=%zz\x1b[2J\u009b",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://\x1b[2J\u202e",
	} {
		t.Run(variable[:min(len(variable), 40)], func(t *testing.T) {
			t.Parallel()
			got := newInstallation(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+gone.URL, variable).run(runAgent...)
			if got.code != 0 || !strings.Contains(got.stderr, "telemetry") || strings.Contains(got.stderr, header) {
				t.Errorf("exit code %d: %s", got.code, got.stderr)
			}
			wantPrintable(t, got.stderr)
		})
	}
}

func TestExportIsOffByDefault(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	for name, environ := range map[string][]string{
		"nothing set": nil,
		"disabled":    {"OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL},
		"none":        {"OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newInstallation(t, environ...).run(runAgent...)
			if trace := wantRun(t, got, false); trace != "" || strings.Contains(got.stderr, "OTEL_") {
				t.Errorf("the agent is in the trace %q\n%s", trace, got.stderr)
			}
		})
	}
	t.Run("no agent runs", func(t *testing.T) {
		t.Parallel()
		got := newInstallation(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL).run("detect")
		if got.code != 0 || got.stdout != "claude\ncodex\n" || got.stderr != "" {
			t.Errorf("detect: %+v", got)
		}
	})
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.bodies) > 0 {
			t.Errorf("%d requests were sent", len(c.bodies))
		}
	})
}

func TestPropagators(t *testing.T) {
	t.Parallel()
	for propagators, propagated := range map[string]bool{"none": false, "baggage": false, "tracecontext,baggage": true} {
		t.Run(propagators, func(t *testing.T) {
			t.Parallel()
			c := newCollector(t)
			agentParent := wantRun(t, newInstallation(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_PROPAGATORS="+propagators, "TRACEPARENT="+parent).run(runAgent...), false)
			c.mu.Lock()
			defer c.mu.Unlock()
			id := hex.EncodeToString(c.span(t, "invoke_agent codex").TraceId)
			if propagated != (id == traceID) || propagated != (agentParent != parent) {
				t.Errorf("the trace is %s, the agent's parent %s; want propagated %t", id, agentParent, propagated)
			}
		})
	}
}

// The background process of a session exports it at the end.
func TestSessionIsExported(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	p := newInstallation(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_SERVICE_NAME=ours")
	started := p.run("session", "start", "--agent", "claude")
	id := strings.TrimSpace(started.stdout)
	if started.code != 0 || id == "" {
		t.Fatalf("session start: %+v", started)
	}
	t.Cleanup(func() { p.run("session", "stop", id) })
	for _, answer := range []string{"Answer 1.", "Answer 2."} {
		if got := p.run("session", "send", id, "continue"); got.code != 0 || got.stdout != answer+"\n" {
			t.Errorf("session send: %+v, want %q", got, answer)
		}
	}
	if got := p.run("session", "stop", id); got.code != 0 {
		t.Errorf("session stop: %+v", got)
	}
	c.wait(t, "session claude")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.resources {
		if name := attributes(r.Attributes)["service.name"]; name != "ours" {
			t.Errorf("the service is %q, want that of the variable", name)
		}
	}
	session := c.span(t, "session claude")
	var turns, tools int
	for _, s := range c.spans {
		switch a := attributes(s.Attributes); s.Name {
		case "invoke_agent claude":
			turns++
			if !bytes.Equal(s.ParentSpanId, session.SpanId) || a["gen_ai.usage.output_tokens"] != "1" || a["gen_ai.response.model"] != "stub-1" {
				t.Errorf("a turn is %v", s)
			}
		case "execute_tool Look":
			tools++
			if bytes.Equal(s.ParentSpanId, session.SpanId) || !bytes.Equal(s.TraceId, session.TraceId) {
				t.Errorf("a call is not in a turn: %v", s)
			}
		}
	}
	if turns != 2 || tools != 2 {
		t.Errorf("%d turns and %d calls, want two each: %v", turns, tools, c.spans)
	}
}

// Each signal can be exported alone, and an error in one does not affect the other.
func TestSignalsAreIndependent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ        []string
		traces, metric bool
		warning        string
	}{
		"traces only":         {environ: []string{"OTEL_METRICS_EXPORTER=none"}, traces: true},
		"metrics only":        {environ: []string{"OTEL_TRACES_EXPORTER=none"}, metric: true},
		"an unknown exporter": {environ: []string{"OTEL_TRACES_EXPORTER=carrier-pigeon"}, metric: true, warning: "OTEL_TRACES_EXPORTER"},
		"an unknown protocol": {environ: []string{"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=smoke"}, traces: true, warning: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"},
		"one endpoint":        {environ: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=%s/v1/traces", "OTEL_EXPORTER_OTLP_ENDPOINT="}, traces: true},
		"console":             {environ: []string{"OTEL_TRACES_EXPORTER=console"}, metric: true, warning: `"Name":"invoke_agent codex"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector := newCollector(t)
			environ := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}
			for _, entry := range c.environ {
				environ = append(environ, strings.ReplaceAll(entry, "%s", collector.URL))
			}
			got := newInstallation(t, environ...).run(runAgent...)
			wantRun(t, got, false)
			collector.mu.Lock()
			defer collector.mu.Unlock()
			if (len(collector.spans) > 0) != c.traces || (len(collector.metrics) > 0) != c.metric || !strings.Contains(got.stderr, c.warning) {
				t.Errorf("%d spans, %d metrics; want some %t, %t\n%s", len(collector.spans), len(collector.metrics), c.traces, c.metric, got.stderr)
			}
		})
	}
}

// wantRun checks that the run succeeded, with a warning or without, and returns the
// parent span of the agent.
func wantRun(t *testing.T, got outcome, warned bool) (parent string) {
	t.Helper()
	text, begins := strings.CutPrefix(got.stdout, "Parent: ")
	parent, ends := strings.CutSuffix(text, ".\n")
	if got.code != 0 || !begins || !ends || strings.Contains(got.stderr, "not all telemetry was sent") != warned {
		t.Errorf("exit code %d, %q, want a warning %t\n%s", got.code, got.stdout, warned, got.stderr)
	}
	return parent
}
