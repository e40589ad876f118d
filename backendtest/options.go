package backendtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// Values that occur nowhere by accident.
const (
	modelName      = "backendtest-model-3f"
	sessionName    = "backendtest-session-5c"
	allowedCommand = "backendtest-command-8e *"
	systemWords    = "backendtest words 9b"
	toolName       = "backendtest_tool_a7"
	maxTurns       = 78123
	schemaProperty = "backendtest-property-4d"
)

var optionRules = []rule{
	{name: "options", test: options,
		text: "What Options says is honoured reaches the CLI: the model, the additional system prompt, the added directories, the allowed commands, the limit of turns."},
	{name: "options-tools", test: optionTools,
		text: "A list of allowed or denied tools that Options supports makes a difference to the CLI."},
	{name: "options-words", test: optionWords,
		text: "Each word of effort, verbosity and access that Options lists makes a difference to the CLI, and no word of access is the same as another."},
	{name: "options-schema", test: optionsSchema,
		text: "A schema for the answer reaches the CLI: by what Options.Schema says that Command passes on, and with the prompt otherwise."},
	{name: "options-refused", test: optionsRefused,
		text: "What Options does not name is refused as a usage error before anything is started; effort and verbosity are left out with a warning."},
}

func options(w *world) {
	req := w.full()
	w.must(w.fullAccess(&req))
	seen := w.started(req).seen
	expect := func(what, value string) {
		if value != "" && !w.passed(seen, value) {
			w.failf("the CLI does not get %s %q; it was started with %s", what, value, quoted(seen.Args))
		}
	}
	expect("the model", req.Model)
	expect("the additional system prompt", req.AppendSystemPrompt)
	for _, dir := range req.AddDirs {
		expect("the added directory", dir)
	}
	for _, pattern := range req.AllowCommands {
		expect("the allowed command", pattern)
	}
	if req.MaxTurns > 0 {
		expect("the limit of turns", strconv.Itoa(req.MaxTurns))
	}
	if slices.Contains(w.Runtime.Run.Options.Access, agent.AccessRead) && len(req.AddDirs) > 0 {
		req.Access = agent.AccessRead
		req.AllowCommands = nil
		if o := w.run(req, w.answer("fine")...); o.seen == nil {
			w.failf("added directories are refused with access read: %v", o.err)
		}
	}
}

// optionTools compares requests with the access that permits most.
func optionTools(w *world) {
	o := &w.Runtime.Run.Options
	list := []string{cmp.Or(w.Tool, toolName)}
	req := w.request()
	if slices.Contains(o.Access, agent.AccessFull) {
		req.Access = agent.AccessFull
	}
	differs := func(what string, req agent.Request, plain string) {
		if w.difference(req) == plain {
			w.failf("the list of %s tools %q is the same to the CLI as none", what, list)
		}
	}
	if !o.AllowTools && !o.DenyTools {
		return
	}
	plain := w.difference(req)
	if o.AllowTools {
		req.AllowTools = list
		differs("allowed", req, plain)
	}
	if o.DenyTools {
		req.AllowTools, req.DenyTools = nil, list
		differs("denied", req, plain)
	}
}

// passed reports whether value is anywhere where the CLI reads settings: in its
// arguments, variables, inherited files or in new files.
func (w *world) passed(seen *Invocation, value string) bool {
	for _, text := range settings(seen) {
		if strings.Contains(text, value) {
			return true
		}
	}
	return false
}

// settings returns all that the CLI is given, but for the prompt.
func settings(seen *Invocation) []string {
	list := slices.Concat(seen.Args, seen.Env)
	for _, text := range seen.Descriptors {
		list = append(list, string(text))
	}
	for _, text := range seen.Files {
		list = append(list, string(text))
	}
	slices.Sort(list)
	return list
}

// random matches what is another in each run.
var random = regexp.MustCompile(`[0-9a-f]{8,}|bus-agent-[0-9a-z]+|bin/[0-9]+|BUS_AGENT_RUN=.*`)

// difference returns what the CLI is given for req, without what is random, so
// that it can be compared with another.
func (w *world) difference(req agent.Request) string {
	o := w.run(req, w.answer("fine")...)
	if o.seen == nil {
		w.failf("the CLI was not started: %v", o.err)
		return ""
	}
	list := settings(o.seen)
	for i := range list {
		list[i] = random.ReplaceAllString(list[i], "*")
	}
	slices.Sort(list)
	return strings.Join(list, "\x00")
}

func optionWords(w *world) {
	o := &w.Runtime.Run.Options
	plain := w.difference(w.request())
	differs := func(what string, change func(*agent.Request)) string {
		req := w.request()
		change(&req)
		got := w.difference(req)
		if got == plain {
			w.failf("%s is the same to the CLI as none", what)
		}
		return got
	}
	var low, high string
	for _, effort := range o.Efforts {
		got := differs("reasoning effort "+string(effort), func(r *agent.Request) { r.ReasoningEffort = effort })
		switch effort {
		case agent.EffortLow:
			low = got
		case agent.EffortHigh:
			high = got
		}
	}
	if low != "" && low == high {
		w.failf("reasoning effort low is the same to the CLI as high")
	}
	said := map[string]agent.Verbosity{}
	for _, verbosity := range o.Verbosity {
		got := differs("verbosity "+string(verbosity), func(r *agent.Request) { r.Verbosity = verbosity })
		if other, ok := said[got]; ok {
			w.failf("verbosity %s is the same to the CLI as %s", verbosity, other)
		}
		said[got] = verbosity
	}
	may := map[string]agent.Access{}
	for _, access := range o.Access {
		req := w.request()
		req.Access = access
		got := w.difference(req)
		if other, ok := may[got]; ok {
			w.failf("access %s is the same to the CLI as %s", access, other)
		}
		may[got] = access
		if access == agent.AccessWrite && w.access() == "" && got != plain {
			w.failf("access write is not what a request without an access gets")
		}
	}
}

// schemas are of the kinds that CLIs take and do not take. Each has the property
// schemaProperty.
var schemas = []string{
	`{"type":"object","properties":{"` + schemaProperty + `":{"type":"string"}},"required":["` + schemaProperty + `"],"additionalProperties":false}`,
	`{"type":"object","properties":{"` + schemaProperty + `":{"type":"string","pattern":"^a"}}}`,
	`{"type":"array","items":{"required":["` + schemaProperty + `"]}}`,
}

func optionsSchema(w *world) {
	for _, token := range w.tokens() {
		for _, schema := range schemas {
			req := w.request()
			req.Runtime, req.Schema = token, json.RawMessage(schema)
			seen := w.started(req).seen
			prompt, err := w.received(seen)
			if err == nil && !strings.Contains(prompt, schemaProperty) && !w.passed(seen, schemaProperty) {
				w.failf("%s does not get the schema %s; it was started with %s", token, schema, quoted(seen.Args))
			}
		}
	}
}

func optionsRefused(w *world) {
	o := &w.Runtime.Run.Options
	bin, a := w.install()
	r := w.runner(bin, nil)
	refused := func(what string, change func(*agent.Request)) {
		req := w.request()
		change(&req)
		if _, err := r.Run(w.ctx, req, agent.Output{}); !errors.Is(err, agent.ErrUsage) {
			w.failf("%s gives %v", what, err)
		}
	}
	if !o.Model {
		refused("a model", func(r *agent.Request) { r.Model = modelName })
	}
	if !o.AppendSystemPrompt {
		refused("an additional system prompt", func(r *agent.Request) { r.AppendSystemPrompt = systemWords })
	}
	if !o.MCPServers {
		refused("an MCP server", func(r *agent.Request) { r.MCPServers = []agent.MCPServer{{Name: "a", Command: "/bin/a"}} })
	}
	if !o.AllowTools {
		refused("an allowed tool", func(r *agent.Request) { r.AllowTools = []string{toolName} })
	}
	if !o.DenyTools {
		refused("a denied tool", func(r *agent.Request) { r.DenyTools = []string{toolName} })
	}
	if !o.AllowCommands {
		refused("an allowed command", func(r *agent.Request) { r.AllowCommands = []string{allowedCommand} })
	}
	if !o.AddDirs {
		refused("an added directory", func(r *agent.Request) { r.AddDirs = []string{w.home} })
	}
	if !o.Resume {
		refused("a session to resume", func(r *agent.Request) { r.Resume = sessionName })
	}
	if !o.Continue {
		refused("the latest session", func(r *agent.Request) { r.Continue = true })
	}
	if !o.MaxTurns {
		refused("a limit of turns", func(r *agent.Request) { r.MaxTurns = maxTurns })
	}
	for _, access := range agent.Accesses() {
		if !slices.Contains(o.Access, access) {
			refused("access "+string(access), func(r *agent.Request) { r.Access = access })
		}
	}
	seen, err := a.Invocation()
	w.must(err)
	if seen != nil {
		w.failf("the CLI was started with %s", quoted(seen.Args))
	}
	leftOut := func(what string, change func(*agent.Request)) {
		req := w.request()
		change(&req)
		plan, err := r.DryRun(w.ctx, req)
		if err != nil || len(plan.Warnings) == 0 {
			w.failf("%s gives %v and %d warnings", what, err, len(plan.Warnings))
		}
	}
	for _, effort := range agent.Efforts() {
		if !slices.Contains(o.Efforts, effort) {
			leftOut("reasoning effort "+string(effort), func(r *agent.Request) { r.ReasoningEffort = effort })
		}
	}
	for _, verbosity := range agent.Verbosities() {
		if !slices.Contains(o.Verbosity, verbosity) {
			leftOut("verbosity "+string(verbosity), func(r *agent.Request) { r.Verbosity = verbosity })
		}
	}
}
