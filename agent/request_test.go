package agent

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// whole returns a request in which every field is set.
func whole() Request {
	return Request{
		Runtime: "codex:local", Prompt: "p\n\x01", Template: "{{A}}", Vars: map[string]string{"A": "b"}, Workdir: "/w", Model: "m",
		ReasoningEffort: EffortHigh, Verbosity: VerbosityLow, UserConfig: UserConfigOn,
		AppendSystemPrompt: "Be brief.", MCPServers: []MCPServer{{Name: "a", Command: "x"}}, AllowTools: []string{"Read"}, DenyTools: []string{"Edit"},
		Access: AccessRead, AllowCommands: []string{"go test *"},
		AddDirs: []string{"/a"}, Env: []string{"A=b"}, Resume: "r", Continue: true, MaxTurns: 3, Args: []string{"--x"},
		TrustWorkspace: true, RequireInstructions: true, Timeout: time.Minute, IdleTimeout: 1500 * time.Millisecond, CaptureLimit: -1,
		Attachments: []Attachment{{Name: "a", Data: []byte{0xff}}}, Schema: json.RawMessage(`{"type":"object"}`), Labels: Labels{Project: "p", Task: "t", Parent: "u", Previous: "v"},
	}
}

func TestRequestSurvivesJSON(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Request{"empty": {}, "whole": whole()} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Request
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if name == "empty" && string(text) != "{}" {
			t.Errorf("an empty request is %s", text)
		}
	}
}

// A Request is data: nothing in it is called or written to, and nothing is lost in JSON.
func TestRequestIsPlainData(t *testing.T) {
	t.Parallel()
	r := reflect.ValueOf(whole())
	for i := range r.NumField() {
		f := r.Type().Field(i)
		if k := f.Type.Kind(); k == reflect.Func || k == reflect.Interface || k == reflect.Chan || k == reflect.Pointer {
			t.Errorf("%s is a %v", f.Name, k)
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || name != strings.ToLower(name) {
			t.Errorf("%s is called %q in JSON", f.Name, name)
		}
		if r.Field(i).IsZero() {
			t.Errorf("%s is not set in the test", f.Name)
		}
	}
}

func TestCheckUnusedNamesTheField(t *testing.T) {
	t.Parallel()
	r := Request{Prompt: "x", MaxTurns: 1}
	err := r.CheckUnused("a session", "Schema", "MaxTurns")
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "a session has no use for Request.MaxTurns") {
		t.Errorf("%v, want a usage error that names MaxTurns", err)
	}
	if err := r.CheckUnused("a session", "Schema"); err != nil {
		t.Error(err)
	}
}
