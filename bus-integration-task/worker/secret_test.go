package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/busdk/bus-agent/backends/codex"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/stubagent"
	"github.com/busdk/bus-integration-task/worker/settings"
)

// An agent that prints every secret it knows gets none of them into an event, a record, a
// log, a span, a note, an argument or a commit message.
func TestNoSecretLeavesTheWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	notes := s.withBus()
	secrets := []string{
		"sk-deployed-0123456789", `tok-"quoted"\0123456789`, "tok-of-the-bus", "key-of-another-0123456789",
		"tok-of-a-file-0123456789", "access-0123456789", "refresh-0123456789", "renewed-0123456789",
	}
	folder := t.TempDir()
	s.write(folder, "team", secrets[0]+"\n")
	s.settings.AuthMode, s.settings.CredentialRef, s.settings.DeploymentSecrets = settings.AuthOpenAIKey, "team", folder
	s.environ = append(s.environ, "MY_TOKEN="+secrets[1], "ANTHROPIC_API_KEY="+secrets[3], "GORACE=atexit_sleep_ms=0")
	bin := filepath.Join(t.TempDir(), "bin")
	reg := new(registry.Registry)
	if err := errors.Join(stubagent.Install(bin, "codex"), reg.Register(codex.Runtime())); err != nil {
		t.Fatal(err)
	}
	records := t.TempDir()
	environ := []string{"GORACE=atexit_sleep_ms=0"}
	for _, entry := range s.environ {
		if !strings.HasPrefix(entry, "PATH=") {
			environ = append(environ, entry)
		}
	}
	s.settings.ApprovalPolicy = backend.ApprovalNever
	b := s.bridge(nil)
	b.Logger = slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
	home := t.TempDir()
	s.write(home, "auth.json", `{"OPENAI_API_KEY":null,"tokens":[{"access_token":"`+secrets[5]+`","refresh_token":"`+secrets[6]+`","account_id":"an-account"}]}`)
	environ = append(environ, "CODEX_HOME="+home)
	s.settings.CodexStateRoot = t.TempDir()
	state := filepath.Join(s.settings.StateDir("bus#1.1"), "codex")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(state, "auth.json", `{"tokens":{"access_token":"`+secrets[7]+`"}}`)
	b.Settings = s.settings
	session := &backend.Session{Runtime: "codex", Args: []string{"-c", "x=" + secrets[3]}, Runner: runner.Runner{
		Registry: reg, Environ: append(environ, "PATH="+bin), Recorder: &runs.Records{Root: records, Required: true},
	}}
	b.Backend = session
	b.Hidden = func(stateDir string) []string {
		return append(session.LoginSecrets(stateDir), "BUS_EVENTS_TOKEN="+secrets[4])
	}
	all := strings.Join(secrets, " ")
	quoted, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	steps := []string{
		"say it is " + all, "env OPENAI_API_KEY", "env MY_TOKEN", "env BUS_API_TOKEN", "run 0 curl -H " + all, "run 0 go test ./...",
		"write new.txt " + all, "ask curl " + all,
		`say {"task_complete":true,"status":"done","summary":` + string(quoted) + `,"changed_files":["new.txt"],"plan_closed":false,"no_matching_plan_item":true,"no_matching_plan_reason":` +
			string(quoted) + `,"required_checks":[{"command":"go test ./...","result":"pass","reason":""}],"remaining_blockers":[]}`,
	}
	s.log.post(task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Text: "stub: " + strings.Join(steps, "\nstub: ")})
	exporter := tracetest.NewInMemoryExporter()
	w := newWorker(s.log, "w", b)
	w.Tracers, w.Logger, w.Once = sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)), b.Logger, true
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := s.log.state("bus#1.1")
	if ended.Status != task.StatusDone || ended.End.RunID == "" || len(notes()) != 1 {
		t.Fatalf("%+v; notes %q; log %q", ended.End, notes(), s.warnings)
	}
	outputs := map[string]string{
		"log": strings.Join(s.warnings, ""), "note": strings.Join(notes(), "\n"), "commit": s.git("log", "--format=%an %ae %B %D"),
	}
	for _, e := range s.log.events[1:] {
		text, err := json.Marshal(e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		outputs["event "+e.ID+" "+e.Name] = string(text)
	}
	for _, span := range exporter.GetSpans() {
		outputs["span "+span.Name] = fmt.Sprint(span.Attributes, span.Status, span.Events)
	}
	err = filepath.WalkDir(records, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			outputs["record "+filepath.Base(path)] = string(text)
		}
		return err
	})
	if err != nil || len(outputs) < 20 {
		t.Fatalf("%v, %d outputs", err, len(outputs))
	}
	for name, text := range outputs {
		for _, secret := range secrets {
			escaped, err := json.Marshal(secret)
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range []string{secret, strings.Trim(string(escaped), `"`)} {
				if strings.Contains(text, form) {
					t.Errorf("%s has %s: %.2000s", name, form, text)
				}
			}
		}
	}
}
