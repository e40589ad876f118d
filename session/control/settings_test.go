package control_test

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// fill sets every field below v that JSON has to a value that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint('1')
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "x"}))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i))
			}
		}
	default:
		t.Fatalf("%v cannot be set", v.Type())
	}
}

// A field of a request is in the settings of a session, in the options of its start, or
// refused: none is ignored.
func TestEveryRequestFieldIsUsedOrRefused(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]string{
		"Prompt": "InitialPrompt", "Template": "InitialPrompt", "Vars": "InitialPrompt", // rendered by the caller
		"Env": "Env", "Resume": "Manager.Resume", "Attachments": "Message.Attachments",
	}
	var s control.Settings
	fill(t, reflect.ValueOf(&s).Elem())
	settled := reflect.ValueOf(s.Request())
	for i := range settled.NumField() {
		name := settled.Type().Field(i).Name
		if _, ok := elsewhere[name]; ok || !settled.Field(i).IsZero() {
			continue
		}
		var req agent.Request
		fill(t, reflect.ValueOf(&req).Elem().Field(i))
		_, err := new(runner.Runner).StartSession(t.Context(), req, session.Options{})
		if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "a session has no use for Request."+name) {
			t.Errorf("%s: %v, want a usage error that names the field", name, err)
		}
	}
}

// Entries that older programs have written are read, and the other way around.
func TestStoredKeysOfSettings(t *testing.T) {
	t.Parallel()
	var s control.Settings
	fill(t, reflect.ValueOf(&s).Elem())
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Record map[string]any
	}
	var all map[string]any
	if err := errors.Join(json.Unmarshal(text, &all), json.Unmarshal(text, &stored)); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("access account_dir add_dirs allow_commands allow_tools append_system_prompt approval_timeout args bead deny_tools effort hooks idle mcp_servers mode model policy record " +
		"require_configured require_instructions runtime start_timeout trust_workspace turn_timeout user_config verbosity workdir")
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("settings are stored as %q, want %q", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(stored.Record)), strings.Fields("place preamble required root"); !slices.Equal(got, want) {
		t.Errorf("the record settings are stored as %q, want %q", got, want)
	}
}

// What the settings have is not set a second time in the options of the session.
func TestOptionsThatSettingsHaveAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := control.SessionHandle{Runtime: "talker", SessionID: "abc", Workdir: b.workdir}
	for name, o := range map[string]session.Options{
		"Mode": {Mode: session.ModeMinimal}, "TurnTimeout": {TurnTimeout: time.Second},
		"ApprovalTimeout": {ApprovalTimeout: -1}, "Created": {Created: time.Now()},
	} {
		_, started := b.StartWith(t.Context(), control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}}, o)
		_, resumed := b.ResumeWith(t.Context(), h, control.ResumeOptions{}, o)
		for _, err := range []error{started, resumed} {
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want a usage error", name, err)
			}
		}
	}
	if list, err := b.ListSessions(t.Context(), control.Filter{}); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// Without a store, a client and a manager use that of the user.
func TestDefaultStore(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	save(t, control.NewStore(filepath.Join(dir, "bus-agent", "sessions")), control.Entry{SessionID: "one", State: session.StateStopped})
	var c control.Client
	if e, err := c.Find("one"); err != nil || e.SessionID != "one" {
		t.Errorf("%+v, %v", e, err)
	}
	if list, _, err := c.List(control.Filter{}); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := c.Stop(t.Context(), control.Entry{SessionID: "one", State: session.StateStopped}, ""); err != nil {
		t.Error(err)
	}
	if list, err := new(control.Manager).ListSessions(t.Context(), control.Filter{}); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
