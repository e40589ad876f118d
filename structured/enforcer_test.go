package structured

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

// turns is a runner that plays one turn after the other and keeps the requests.
type turns struct {
	play     []func(agent.Request) (agent.Result, error)
	requests []agent.Request
}

func (s *turns) Run(_ context.Context, req agent.Request, _ agent.Output) (agent.Result, error) {
	n := len(s.requests)
	s.requests = append(s.requests, req)
	if n == len(s.play) {
		return agent.Result{}, errors.New("a turn too many")
	}
	return s.play[n](req)
}

func says(text string, change ...func(*agent.Result)) func(agent.Request) (agent.Result, error) {
	return func(agent.Request) (agent.Result, error) {
		r := agent.Result{Runtime: "fake", Model: "m", SessionID: "s", Text: text, Duration: time.Second}
		for _, c := range change {
			c(&r)
		}
		return r, nil
	}
}

func fails(kind error) func(agent.Request) (agent.Result, error) {
	return func(agent.Request) (agent.Result, error) {
		return agent.Result{Runtime: "fake", ExitCode: -1, Duration: time.Second}, &agent.Error{Kind: kind, Runtime: "fake", Err: errors.New("it broke")}
	}
}

func run(t *testing.T, req agent.Request, play ...func(agent.Request) (agent.Result, error)) (*turns, agent.Result, error) {
	t.Helper()
	schema, err := Compile([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	next := &turns{play: play}
	if req.Prompt == "" && req.Template == "" {
		req.Prompt = "How is the weather?"
	}
	r := Enforcer{Next: next, Schema: schema}
	result, err := r.Run(t.Context(), req, agent.Output{})
	return next, result, err
}

const (
	good  = `{"city":"Turku","degrees":3}`
	wrong = `{"city":"Turku"}`
)

func TestRunTakesTheValueAlone(t *testing.T) {
	t.Parallel()
	next, result, err := run(t, agent.Request{}, says("Here:\n```json\n"+good+"\n```"))
	if err != nil || result.Text != good || len(next.requests) != 1 {
		t.Errorf("%q, %v, %d runs", result.Text, err, len(next.requests))
	}
	if got := next.requests[0]; string(got.Schema) != weather || got.Prompt != "How is the weather?" {
		t.Errorf("asked %+v", got)
	}
}

func TestRunRepairsInTheSession(t *testing.T) {
	t.Parallel()
	var warned []string
	schema, err := Compile([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	cost, more := 0.5, 0.25
	next := &turns{play: []func(agent.Request) (agent.Result, error){
		says(wrong, func(r *agent.Result) {
			r.RunID, r.Warnings, r.Repeated = "run-1", []string{"a", "b"}, true
			r.Usage = &agent.Usage{Input: 10, Cached: 1, Output: 5, Reasoning: 2, CostUSD: &cost}
		}),
		says(good, func(r *agent.Result) {
			r.RunID, r.Warnings = "run-2", []string{"b", "c"}
			r.Usage = &agent.Usage{Input: 20, Cached: 2, Output: 6, Reasoning: 3, CostUSD: &more}
		}),
	}}
	r := Enforcer{Next: next, Schema: schema, Warn: func(line string) { warned = append(warned, line) }}
	result, err := r.Run(t.Context(), agent.Request{
		Runtime: "", Template: "How is {{IT}}?", Vars: map[string]string{"IT": "it"}, Model: "m", Continue: true,
		Labels: agent.Labels{Task: "t", Previous: "before"}, Args: []string{"-x"},
	}, agent.Output{})
	if err != nil || result.Text != good || len(next.requests) != 2 {
		t.Fatalf("%+v, %v", result, err)
	}
	second := next.requests[1]
	words := `lacks the property "degrees"`
	if !strings.Contains(second.Prompt, words) || second.Template != "" || second.Resume != "s" || second.Continue ||
		second.Runtime != "fake" || second.Model != "m" || string(second.Schema) != weather ||
		second.Labels != (agent.Labels{Task: "t", Previous: "run-1"}) || !slices.Equal(second.Args, []string{"-x"}) {
		t.Errorf("asked again with %+v", second)
	}
	warning := "the answer does not follow the schema: " + words + "; asking once more"
	if !slices.Equal(warned, []string{warning}) {
		t.Errorf("warnings: %q", warned)
	}
	sum := 0.75
	want := &agent.Usage{Input: 30, Cached: 3, Output: 11, Reasoning: 5, CostUSD: &sum}
	if diff := cmp.Diff(want, result.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if result.Duration != 2*time.Second || result.RunID != "run-2" || !result.Repeated || !slices.Equal(result.Warnings, []string{"a", "b", warning, "c"}) {
		t.Errorf("result %+v", result)
	}
}

func TestRunRepairsInANewSession(t *testing.T) {
	t.Parallel()
	for name, play := range map[string][]func(agent.Request) (agent.Result, error){
		"no session":            {says(wrong, func(r *agent.Result) { r.SessionID = "" }), says(good)},
		"session not resumable": {says(wrong), fails(agent.ErrUsage), says(good)},
	} {
		next, result, err := run(t, agent.Request{Template: "How is {{IT}}?", Vars: map[string]string{"IT": "the sea"}, Resume: "older"}, play...)
		if err != nil || result.Text != good || len(next.requests) != len(play) {
			t.Errorf("%s: %+v, %v", name, result, err)
			continue
		}
		last := next.requests[len(play)-1]
		for _, part := range []string{"How is the sea?", wrong, `lacks the property "degrees"`} {
			if !strings.Contains(last.Prompt, part) {
				t.Errorf("%s: the prompt lacks %q: %s", name, part, last.Prompt)
			}
		}
		if last.Resume != "older" || last.Template != "" || last.Vars != nil {
			t.Errorf("%s: asked again with %+v", name, last)
		}
	}
}

func TestRunGivesUpAfterOneRepair(t *testing.T) {
	t.Parallel()
	next, result, err := run(t, agent.Request{}, says(wrong), says(`{"degrees":3}`))
	var invalid *InvalidError
	if !errors.Is(err, agent.ErrAgent) || !errors.As(err, &invalid) || !invalid.Repaired || len(next.requests) != 2 {
		t.Fatalf("%v after %d runs", err, len(next.requests))
	}
	if got := err.Error(); strings.Contains(got, "\n") || !strings.Contains(got, `lacks the property "city"`) || !strings.HasPrefix(got, "fake: ") {
		t.Errorf("it says %q", got)
	}
	if result.Text != `{"degrees":3}` || result.Duration != 2*time.Second {
		t.Errorf("result %+v", result)
	}
}

// What fails is not repaired, and a repair that fails says why there was one.
func TestRunFailures(t *testing.T) {
	t.Parallel()
	next, result, err := run(t, agent.Request{}, fails(agent.ErrQuota))
	if !errors.Is(err, agent.ErrQuota) || len(next.requests) != 1 || result.ExitCode != -1 {
		t.Errorf("the first turn: %v after %d runs", err, len(next.requests))
	}
	for _, kind := range []error{agent.ErrQuota, agent.ErrTimeout, agent.ErrCanceled, agent.ErrAuthentication} {
		next, result, err = run(t, agent.Request{}, says(wrong), fails(kind))
		var invalid *InvalidError
		if !errors.Is(err, kind) || !errors.As(err, &invalid) || len(next.requests) != 2 || result.Text != wrong || result.SessionID != "s" {
			t.Errorf("%v: %v, %+v", kind, err, result)
		}
		if !strings.Contains(err.Error(), "it broke") || !strings.Contains(err.Error(), "lacks the property") {
			t.Errorf("%v: it says %v", kind, err)
		}
	}
	// An agent has run, so it is not a usage error.
	if _, _, err = run(t, agent.Request{}, says(wrong), fails(agent.ErrUsage), fails(agent.ErrUsage)); errors.Is(err, agent.ErrUsage) || !errors.Is(err, agent.ErrAgent) {
		t.Errorf("got %v", err)
	}
}

func TestRunDoesNotRepairWhatIsCut(t *testing.T) {
	t.Parallel()
	next, result, err := run(t, agent.Request{}, says(good, func(r *agent.Result) { r.TextTruncated = true }))
	if !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), "its middle is missing") || len(next.requests) != 1 || result.Text != good {
		t.Errorf("%v, %+v", err, result)
	}
}

// Both turns together have the time that was asked for.
func TestRunTimeout(t *testing.T) {
	t.Parallel()
	next, _, err := run(t, agent.Request{Timeout: time.Hour}, says(wrong), says(good))
	if err != nil {
		t.Fatal(err)
	}
	if first, second := next.requests[0].Timeout, next.requests[1].Timeout; first != time.Hour || second <= 0 || second >= time.Hour {
		t.Errorf("timeouts %v and %v", first, second)
	}
	next, _, err = run(t, agent.Request{Timeout: 1}, says(wrong), says(good))
	if !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), "no time left") || len(next.requests) != 1 {
		t.Errorf("without time: %v after %d runs", err, len(next.requests))
	}
	schema, err := Compile([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []time.Duration{0, time.Hour} {
		next := &turns{play: []func(agent.Request) (agent.Result, error){says(wrong), says(good)}}
		r := Enforcer{Next: next, Schema: schema, Timeout: own}
		if _, err := r.Run(t.Context(), agent.Request{Prompt: "x"}, agent.Output{}); err != nil {
			t.Fatal(err)
		}
		if first, second := next.requests[0].Timeout, next.requests[1].Timeout; first != own || (second > 0) != (own > 0) || second > own {
			t.Errorf("own %v: timeouts %v and %v", own, first, second)
		}
	}
}

// A resumed session has the attachments of the first turn; a new one gets them.
func TestRepairSendsAttachmentsToANewSessionOnly(t *testing.T) {
	t.Parallel()
	req := agent.Request{Attachments: make([]agent.Attachment, 1)}
	next, _, err := run(t, req, says(wrong), fails(agent.ErrUsage), says(good))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0, 1} {
		if got := len(next.requests[i].Attachments); got != want {
			t.Errorf("request %d has %d attachments, want %d", i, got, want)
		}
	}
}

// Another runtime took over: the name of the model was not for it.
func TestRunRepairsWithTheRuntimeThatAnswered(t *testing.T) {
	t.Parallel()
	next, result, err := run(t, agent.Request{Runtime: "first", Model: "big"}, says(wrong, func(r *agent.Result) {
		r.Attempts = []agent.Attempt{{Runtime: "first"}}
	}), says(good))
	if err != nil || next.requests[1].Runtime != "fake" || next.requests[1].Model != "auto" || len(result.Attempts) != 1 {
		t.Errorf("%v, %+v, %+v", err, next.requests, result)
	}
}

func TestUsageOfBothTurns(t *testing.T) {
	t.Parallel()
	of := func(input int64, cumulative bool) *agent.Usage {
		return &agent.Usage{Input: input, Cumulative: cumulative}
	}
	for name, c := range map[string]struct {
		first, second *agent.Usage
		other, old    bool // the second session is another, the first was resumed
		want          *agent.Usage
	}{
		"none":                     {nil, nil, false, false, nil},
		"the first alone":          {of(1, false), nil, false, false, of(1, false)},
		"the second alone":         {nil, of(2, false), false, false, of(2, false)},
		"of the session":           {of(1, false), of(3, true), false, false, of(3, false)},
		"of a resumed session":     {of(5, true), of(8, true), false, true, of(8, true)},
		"of the session, alone":    {nil, of(3, true), false, false, of(3, false)},
		"a turn after the session": {of(5, true), of(2, false), false, true, of(7, true)},
		"of another session":       {of(1, false), of(2, false), true, false, of(3, false)},
		"of another, older one":    {of(5, true), of(6, true), true, true, of(11, true)},
	} {
		first := agent.Result{SessionID: "a", Usage: c.first}
		second := agent.Result{SessionID: "a", Usage: c.second}
		if c.other {
			second.SessionID = "b"
		}
		if diff := cmp.Diff(c.want, sum(&first, &second, !c.old)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	cost := 1.0
	a, b := agent.Result{Usage: &agent.Usage{CostUSD: &cost}}, agent.Result{Usage: &agent.Usage{}}
	if got := sum(&a, &b, true); got.CostUSD != nil {
		t.Error("the sum has a cost although one turn has none")
	}
}

// The words of the validator quote the answer, but no secret.
func TestRunMasksSecrets(t *testing.T) {
	t.Parallel()
	schema, err := Compile([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	leak := `{"city":"Turku","degrees":"sk-of-the-caller and ` + strings.Repeat("sk-of-the-request ", 100) + `"}`
	var warned string
	next := &turns{play: []func(agent.Request) (agent.Result, error){says(leak), says(leak)}}
	r := Enforcer{Next: next, Schema: schema, Environ: []string{"MY_API_KEY=sk-of-the-caller"}, Warn: func(line string) { warned = line }}
	_, err = r.Run(t.Context(), agent.Request{Prompt: "x", Env: []string{"OTHER_TOKEN=sk-of-the-request"}}, agent.Output{})
	for _, text := range []string{err.Error(), warned, next.requests[1].Prompt} {
		if !strings.Contains(text, `/degrees: must be an integer, not the string "*** and ***`) || strings.Contains(text, "sk-of") {
			t.Errorf("it says %q", text)
		}
	}
}

func TestRunRefusesASecondSchema(t *testing.T) {
	t.Parallel()
	req := agent.Request{Prompt: "x", Schema: json.RawMessage(`{"other":1}`)}
	next, _, err := run(t, req, says(good))
	if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "Request.Schema") || len(next.requests) != 0 {
		t.Errorf("%v after %d runs, want a usage error that names Schema", err, len(next.requests))
	}
}
