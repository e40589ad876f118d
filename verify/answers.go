package verify

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/structured"
)

// The runs of the scene answers, by their prompts.
const (
	firstTake    = "remember 42"
	continueTake = "and doubled?"
	otherTake    = "something else"
	resumeTake   = "what was it?"
)

// replyTo holds the answers to the prompts.
var replyTo = map[string]string{
	firstTake: "I noted 42.", continueTake: "it is 84", otherTake: "unrelated", resumeTake: "it was 42",
}

const (
	fact      = "the sky is blue"
	readsFact = "cat fact.txt"
)

// systemText is the additional system prompt. Its line ends and quotes are part of it.
const systemText = "Answer like \"a sailor\".\nNever say <hello> to C:\\ships & crews, é."

// tidyFact is whether the runs of the scene answers left anything.
const tidyFact = "tidy"

// perAnswer is the usage of each answer of the model.
var perAnswer = modeltest.Usage{Input: 1000, Cached: 100, Output: 50, Reasoning: 7}

// answers is a scene of a session whose model reads a file, the session continued, another
// session, and the first one resumed.
var answers = &scene{func(t *trial) error {
	script := func(r *modeltest.Request) modeltest.Reply {
		prompt := lastText(r)
		if strings.Contains(prompt, firstTake) && len(r.ToolResults()) == 0 && t.target.Command != nil {
			return modeltest.Reply{t.target.Command(readsFact), perAnswer}
		}
		for take, answer := range replyTo {
			if strings.Contains(prompt, take) {
				return modeltest.Reply{modeltest.Text{answer}, perAnswer}
			}
		}
		return nil
	}
	if err := t.arrange(script, nested); err != nil {
		return err
	}
	workdir := t.workdir(nested)
	if err := writeFiles(workdir, map[string]string{"fact.txt": fact + "\n"}); err != nil {
		return err
	}
	before, err := t.files(nested.workdir)
	if err != nil {
		return err
	}
	ask := func(name string, req agent.Request) *take {
		req.Prompt, req.Workdir = name, workdir
		if hasSystemPrompt(&t.target, &t.runtime) == "" {
			req.AppendSystemPrompt = systemText
		}
		return t.shoot(name, req, replyTo[name])
	}
	options := use(&t.runtime).Options
	first := ask(firstTake, agent.Request{ReasoningEffort: t.effort(), Access: t.most(), RequireInstructions: t.runtime.Instructions != nil})
	if options.Continue {
		ask(continueTake, agent.Request{Continue: true})
	}
	if options.Resume && first.SessionID != "" {
		ask(otherTake, agent.Request{})
		ask(resumeTake, agent.Request{Resume: first.SessionID})
	}
	t.note(tidyFact, t.leftNothing(before, nested.workdir))
	return nil
}}

// effort returns low, or else the greatest effort: neither is a likely default. It is
// empty if the runtime supports none.
func (t *trial) effort() agent.ReasoningEffort {
	efforts := use(&t.runtime).Options.Efforts
	switch {
	case len(efforts) == 0:
		return ""
	case slices.Contains(efforts, agent.EffortLow):
		return agent.EffortLow
	}
	return efforts[len(efforts)-1]
}

// most returns the greatest access that the runtime supports.
func (t *trial) most() agent.Access {
	for _, access := range slices.Backward(agent.Accesses()) {
		if slices.Contains(use(&t.runtime).Options.Access, access) {
			return access
		}
	}
	return ""
}

func model(t *trial) error {
	k, err := t.take(firstTake)
	switch {
	case err != nil:
		return err
	case k.requests[0].Model() != cmp.Or(t.target.Requested, t.target.Model):
		return fmt.Errorf("the model %q was requested instead of %q", k.requests[0].Model(), cmp.Or(t.target.Requested, t.target.Model))
	case k.Model != t.target.Model:
		return fmt.Errorf("the run reports the model %q instead of %q", k.Model, t.target.Model)
	}
	return nil
}

// systemPrompt checks the first run and the one that resumes its session.
func systemPrompt(t *trial) error {
	for _, name := range []string{firstTake, resumeTake} {
		if t.takes[name] == nil {
			continue // the runtime resumes no sessions
		}
		k, err := t.take(name)
		if err == nil {
			err = systemTextIn(k.requests[0])
		}
		if err != nil {
			return fmt.Errorf("the run %q: %w", name, err)
		}
	}
	return nil
}

// systemTextIn checks that a request has systemText once, not as text of the user.
func systemTextIn(r *modeltest.Request) error {
	count := strings.Count(strings.Join(r.Texts("system", "developer"), "\n"), systemText)
	switch all := r.Count(systemText); {
	case count != 1:
		return fmt.Errorf("the additional system prompt arrived %d times as text of the system or the developer, want 1", count)
	case all != 1:
		return fmt.Errorf("the additional system prompt arrived %d times, want 1", all)
	}
	return nil
}

func effort(t *trial) error {
	k, err := t.take(firstTake)
	if err == nil && k.requests[0].Effort() != string(t.effort()) {
		err = fmt.Errorf("the effort %q was requested instead of %q", k.requests[0].Effort(), t.effort())
	}
	return err
}

func toolCall(t *trial) error {
	k, err := t.take(firstTake)
	if err != nil {
		return err
	}
	if results := k.requests[len(k.requests)-1].ToolResults(); len(results) != 1 || !strings.Contains(results[0].Output, fact) {
		return fmt.Errorf("the model got the tool results %s", quote(fmt.Sprint(results)))
	}
	call, result := k.last(agent.KindToolCall), k.last(agent.KindToolResult)
	switch {
	case call == nil || call.Tool == nil:
		return errors.New("no event reports the tool call")
	case result == nil || result.Tool == nil:
		return errors.New("no event reports the tool's result")
	case !strings.Contains(string(call.Tool.Input), readsFact):
		return fmt.Errorf("the event of the tool call has the input %s", quote(string(call.Tool.Input)))
	case !strings.Contains(result.Tool.Output.String(), fact):
		return fmt.Errorf("the event of the tool's result has the output %s", quote(result.Tool.Output.String()))
	case call.Tool.ID == "" || call.Tool.ID != result.Tool.ID:
		return fmt.Errorf("the events have the IDs %q and %q", call.Tool.ID, result.Tool.ID)
	}
	return nil
}

// last returns the last event of a kind, or nil.
func (o *outcome) last(kind agent.Kind) *agent.Event {
	for _, e := range slices.Backward(o.events) {
		if e.Kind == kind {
			return e
		}
	}
	return nil
}

// usage checks every run: a resumed one must not report those before it.
func usage(t *trial) error {
	for _, name := range []string{firstTake, continueTake, otherTake, resumeTake} {
		if t.takes[name] == nil {
			continue // the runtime cannot do it
		}
		k, err := t.take(name)
		if err != nil {
			return err
		}
		if k.Usage == nil {
			return fmt.Errorf("the run with the prompt %q reports no usage", name)
		}
		n := int64(len(k.requests))
		got, want := *k.Usage, agent.Usage{Input: n * perAnswer.Input, Cached: n * perAnswer.Cached, Output: n * perAnswer.Output, Reasoning: n * perAnswer.Reasoning}
		if got.CostUSD, got.Context, got.ContextSize = nil, 0, 0; got != want {
			return fmt.Errorf("the run with the prompt %q reports %+v, the model reported %+v", name, got, want)
		}
	}
	return nil
}

func resume(t *trial) error {
	first, err := t.take(firstTake)
	switch {
	case err != nil:
		return err
	case first.SessionID == "":
		return errors.New("the run reports no session ID")
	}
	other, err := t.take(otherTake)
	switch {
	case err != nil:
		return err
	case other.SessionID == first.SessionID:
		return errors.New("two sessions have the same ID")
	}
	return continues(t, resumeTake)
}

func continued(t *trial) error {
	if _, err := t.take(firstTake); err != nil {
		return err
	}
	return continues(t, continueTake)
}

// continues checks that a run continued the session of the first.
func continues(t *trial, take string) error {
	k, err := t.take(take)
	switch first := t.takes[firstTake]; {
	case err != nil:
		return err
	case k.SessionID != first.SessionID:
		return fmt.Errorf("the turn belongs to the session %q instead of %q", k.SessionID, first.SessionID)
	}
	for _, text := range []string{firstTake, replyTo[firstTake], take} {
		if n := k.requests[0].Count(text); n != 1 {
			return fmt.Errorf("%q is in the conversation %d times", text, n)
		}
	}
	if k.requests[0].Count(otherTake) != 0 {
		return errors.New("the conversation has the text of another session")
	}
	return t.rulesOnce(k.requests[0], rootMark, middleMark, deepMark)
}

func leavesNothing(t *trial) error { return t.facts[tidyFact] }

// leftNothing compares files with earlier ones, and finds processes.
func (t *trial) leftNothing(before map[string]string, workdir string) error {
	after, err := t.files(workdir)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if was, ok := before[name]; !ok {
			return fmt.Errorf("the run left %s", name)
		} else if was != after[name] {
			return fmt.Errorf("the run changed %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			return fmt.Errorf("the run removed %s", name)
		}
	}
	return t.checkProcesses()
}

const (
	answerSchema = `{"type":"object","properties":{"city":{"type":"string"},"frostpoint":{"type":"integer"}},"required":["city","frostpoint"],"additionalProperties":false}`
	jsonAnswer   = `{"city":"Turku","frostpoint":3}`
)

// values is a scene of a run, with a schema if the runtime has single runs.
var values = &scene{func(t *trial) error {
	reply := says(jsonAnswer)
	if t.target.JSON != nil {
		reply = t.target.JSON(jsonAnswer)
	}
	if err := t.arrange(modeltest.Always(reply), replaced); err != nil {
		return err
	}
	compiled, err := structured.Compile([]byte(answerSchema))
	if err != nil {
		return err
	}
	k, req := &take{}, agent.Request{Prompt: "How is the weather?"}
	if hasRuns(&t.target, &t.runtime) == "" {
		k.outcome = t.runBy(t.ctx, &structured.Enforcer{Next: t.runner(), Schema: compiled}, req)
	} else {
		k.outcome = t.run(t.ctx, req)
	}
	k.failed, k.requests = k.err, t.model.ModelRequests()
	t.keep(layoutTake, k)
	return nil
}}

// schema checks that the schema arrives, and that the answer is the value alone.
func schema(t *trial) error {
	switch k, err := t.take(layoutTake); {
	case err != nil:
		return fmt.Errorf("the run failed: %w", err)
	case k.Text != jsonAnswer:
		return fmt.Errorf("the answer is %s, want %s", quote(k.Text), quote(jsonAnswer))
	case len(k.requests) != 1:
		return fmt.Errorf("the model got %d requests, want 1", len(k.requests))
	case !strings.Contains(string(k.requests[0].Body), "frostpoint"):
		return errors.New("the schema did not arrive")
	}
	return nil
}
