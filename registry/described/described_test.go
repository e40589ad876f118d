package described

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// known is a registry with one runtime, "known".
func known(t testing.TB) *registry.Registry {
	t.Helper()
	r := new(registry.Registry)
	if err := r.Register(registry.Runtime{
		ID: "known", Name: "Known", Executables: []string{"known"}, InstallURL: "https://example.com",
		Run:           registry.Use{Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
		Decoder:       func() formatters.Decoder { return formatters.Generic() },
		ReportsResult: true,
		TokenOnly:     true,
		ExitFailure:   func(*agent.ExitError) agent.Failure { return agent.FailureQuota },
	}); err != nil {
		t.Fatal(err)
	}
	r.Refuse("absent", errors.New("build with it"))
	return r
}

// described returns the runtime with the required members and more.
func described(t testing.TB, members string) registry.Runtime {
	t.Helper()
	rt, err := Runtime("mine", []byte(minimal(members)), known(t))
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func minimal(members string) string {
	text := `{"executables":["mine"],"install_url":"https://example.com/mine"`
	if members != "" {
		text += "," + members
	}
	return text + "}"
}

func TestDescribedCommand(t *testing.T) {
	t.Parallel()
	request := registry.Invocation{Prompt: "-do {model} this", Workdir: "/w", Access: agent.AccessWrite}
	with := func(change func(*registry.Invocation)) registry.Invocation {
		r := request
		change(&r)
		return r
	}
	const rich = `"args":["run",["--model","{model}"],"--resume={resume}","--dir={workdir}","--idle={idle-timeout}","{access}"],
		"access":{"read":["--ask"],"full":[["--allow","{workdir}"],"--yes"]}`
	for name, c := range map[string]struct {
		members string
		request registry.Invocation
		want    agent.Command
	}{
		"no arguments": {"", request, agent.Command{Stdin: "-do {model} this"}},
		"without values": {rich, with(func(inv *registry.Invocation) { inv.Access = agent.AccessRead }),
			agent.Command{Args: []string{"run", "--dir=/w", "--ask"}, Stdin: "-do {model} this"}},
		"with values": {rich, with(func(inv *registry.Invocation) {
			inv.Access, inv.Model, inv.Resume, inv.Args = agent.AccessFull, "{workdir} m", "s-1", []string{"--own", "{model}"}
			inv.IdleTimeout = 90 * time.Second
		}), agent.Command{Args: []string{"run", "--model", "{workdir} m", "--resume=s-1", "--dir=/w", "--idle=1m30s", "--allow", "/w", "--yes", "--own", "{model}"}, Stdin: "-do {model} this"}},
		"argument": {`"args":["-p","--","{prompt}"],"prompt":"argument","slash_commands":true`, with(func(inv *registry.Invocation) {
			inv.Prompt, inv.Args = "/init", []string{"--setup", "--own"}
		}), agent.Command{Args: []string{"-p", "--setup", "--own", "--", "/init"}}},
		"file": {`"args":["--from={prompt-file}"],"prompt":"file"`, request, agent.Command{Args: []string{"--from=/dev/fd/3"}, Files: [][]byte{[]byte("-do {model} this")}}},
		"braces": {`"args":["-c","{}","{ \"a\": {\"b\":1}}","{Model}","{a b}"]`, request,
			agent.Command{Args: []string{"-c", "{}", `{ "a": {"b":1}}`, "{Model}", "{a b}"}, Stdin: "-do {model} this"}},
		"settings": {`"args":["{access}","{effort}","{continue}"],"continue":["-c"],"env":{"A":"0","B":"0"},
			"access":{"write":{"args":["-w"],"env":{"A":"1","B":null}}},"efforts":{"high":{"args":[["--think","max"]],"env":{"C":"2"}}}`,
			with(func(inv *registry.Invocation) { inv.ReasoningEffort, inv.Continue = agent.EffortHigh, true }),
			agent.Command{Args: []string{"-w", "--think", "max", "-c"}, Env: []string{"A=1", "B", "C=2"}, Stdin: "-do {model} this"}},
		"settings without arguments": {`"access":{"write":{"env":{"A":"1"}},"full":{"env":{"A":"2"}}}`, request,
			agent.Command{Env: []string{"A=1"}, Stdin: "-do {model} this"}},
		"no effort": {`"args":["{effort}","{continue}","x"],"continue":["-c"],"efforts":{"high":["-h"]}`, request,
			agent.Command{Args: []string{"x"}, Stdin: "-do {model} this"}},
		"home": {`"home":{"env":"MINE_HOME","files":{"a":"{home}"}},"args":["--config={home}/a"],"env":{"B":"{home}/b:{workdir}"}`,
			with(func(inv *registry.Invocation) { inv.Home = "/h" }),
			agent.Command{Args: []string{"--config=/h/a"}, Env: []string{"B=/h/b:{workdir}"}, Stdin: "-do {model} this"}},
		"variables": {`"env":{"CI":"1","DEBUG":null,"A":""}`, with(func(inv *registry.Invocation) { inv.Access = "" }),
			agent.Command{Env: []string{"A=", "CI=1", "DEBUG"}, Stdin: "-do {model} this"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := described(t, c.members).Run.Command(c.request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDescribedCommandRefuses(t *testing.T) {
	t.Parallel()
	const argument = `"args":["--","{prompt}"],"prompt":"argument"`
	for name, c := range map[string]struct {
		members string
		request registry.Invocation
		text    string
	}{
		"default access":   {`"args":["{access}"],"access":{"read":["-r"],"full":[]}`, registry.Invocation{Prompt: "x", Access: agent.AccessWrite}, `"write"; ask for one of read, full`},
		"other access":     {"", registry.Invocation{Prompt: "x", Access: agent.AccessFull}, `"full"; ask for one of write`},
		"model as option":  {`"args":[["-m","{model}"]]`, registry.Invocation{Prompt: "x", Access: agent.AccessWrite, Model: "--yolo"}, `model "--yolo" begins with a dash`},
		"resume as option": {`"args":[["-r","{resume}"]]`, registry.Invocation{Prompt: "x", Access: agent.AccessWrite, Resume: "-x"}, `session ID "-x"`},
		"NUL in argument":  {argument, registry.Invocation{Prompt: "a\x00b", Access: agent.AccessWrite}, "NUL"},
		"long with prefix": {argument, registry.Invocation{Prompt: strings.Repeat("x", 131100), Access: agent.AccessWrite}, "the limit of an argument is 131071"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt := described(t, c.members)
			err := rt.Run.Check(c.request)
			if err == nil {
				_, err = rt.Run.Command(c.request)
			}
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Command = %v, want a usage error with %q", err, c.text)
			}
		})
	}
}

func TestDescribeRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(" ", MaxBytes)
	for _, c := range []struct{ description, text string }{
		{"", "it is not JSON: unexpected EOF"},
		{"{", "it is not JSON"},
		{"[]", "not a JSON object"},
		{"{} {}", "something follows"},
		{"\"\xff\"", "UTF-8"},
		{"{}" + long, "the limit is 65536"},
		{"{}", `"executables" is missing`},
		{`{"executables":["x"]}`, `"install_url" is missing`},
		{`{"Executables":["x"]}`, `unknown member "Executables" (known: name, executables,`},
		{minimal(`"shell":"sh -c"`), `unknown member "shell"`},
		{minimal(`"name":"a","name":"b"`), `"name" is repeated`},
		{minimal(`"name":null`), `"name" is not a string`},
		{minimal(`"name":7`), `"name" is not a string`},
		{minimal(`"name":"\u001b[2J"`), "not printable"},
		{minimal(`"name":"` + strings.Repeat("n", 65) + `"`), "more than 64 bytes"},
		{minimal(`"` + strings.Repeat("n", 60000) + `":1`), `unknown member "nnn`},
		{minimal(`"executed":["/` + strings.Repeat("n/", 30000) + `"]`), `executed[0]: "/n/n`},
		{minimal(`"args":` + strings.Repeat("[", 30000) + strings.Repeat("]", 30000)), "max depth"},
		{minimal(`"args":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000)), `"args" is not a list`},
		{minimal(`"args":"x"`), `"args" is not a list`},
		{minimal(`"args":[null]`), `"args" is not a list`},
		{minimal(`"args":[[]]`), `"args" is not a list`},
		{minimal(`"args":[["a",null]]`), `"args" is not a list`},
		{minimal(`"args":[["a",["b"]]]`), `"args" is not a list`},
		{minimal(`"args":["a\u0000"]`), "args[0]: \"a\\x00\" has a NUL"},
		{minimal(`"args":["a","{house}"]`), "args[1]: unknown placeholder {house}"},
		{minimal(`"args":["{prompt}"],"prompt":"argument"`), `args[0]: {prompt} must be a separate argument after "--"`},
		{minimal(`"args":["--","-p{prompt}"],"prompt":"argument"`), `args[1]: {prompt} must be`},
		{minimal(`"args":[["--","{prompt}"]],"prompt":"argument"`), `args[0]: "--" must be a separate argument`},
		{minimal(`"args":["--","{prompt}"]`), `args: {prompt} needs "prompt": "argument"`},
		{minimal(`"args":["--","{prompt}","{prompt}"],"prompt":"argument"`), "{prompt} occurs 2 times"},
		{minimal(`"prompt":"argument"`), `"prompt": "argument" needs {prompt}`},
		{minimal(`"prompt":"file"`), "needs {prompt-file}"},
		{minimal(`"args":["{prompt-file}.md"],"prompt":"file"`), "must be the end"},
		{minimal(`"prompt":"shell"`), `prompt: "shell" is not one of stdin, argument, file`},
		{minimal(`"access":{"read":[]}`), `"access" needs {access}`},
		{minimal(`"access":{"root":[]},"args":["{access}"]`), `access "root" is not one of`},
		{minimal(`"access":{"read":null},"args":["{access}"]`), `"access" is not an object`},
		{minimal(`"access":{"read":[],"read":[]},"args":["{access}"]`), `"access" is not an object`},
		{minimal(`"access":{"read":["{model}"]},"args":["{access}"]`), "access.read[0]: unknown placeholder {model}"},
		{minimal(`"access":{"read":["--"]},"args":["{access}"]`), "would end the options"},
		{minimal(`"access":{"read":[]},"args":["--","{access}"]`), `before "--"`},
		{minimal(`"args":["{access}"]`), `{access} needs "access"`},
		{minimal(`"output":"acp","prompt":"file"`), `prompt: "file" is of no use`},
		{minimal(`"output":"acp","prompt":"file","args":["{prompt-file}"]`), `prompt: "file" is of no use`},
		{minimal(`"output":"acp","args":["--resume={resume}"]`), "args[0]: unknown placeholder {resume}"},
		{minimal(`"output":"acp","acp":{"args":["a"]},"args":["b"]`), "leave out args or acp.args"},
		{minimal(`"output":"acp","args":["{access}{model}"],"access":{"read":["a"]}`), `args[0]: {access} must be a separate argument`},
		{minimal(`"acp":{"args":["a","{prompt}"]}`), `acp.args[1]: unknown placeholder {prompt} (known here: {model}, {workdir}, {access}, {effort}, {home}, {system-prompt}, {mcp-file}, {allow-tools}, {deny-tools})`},
		{minimal(`"acp":{"args":["{access}"]}`), `acp.args: {access} needs "access"`},
		{minimal(`"acp":{"access":{"read":["a"]}}`), `acp.args: "access" needs {access}`},
		{minimal(`"acp":{"access":{"read":["{model}"]},"args":["{access}"]}`), `acp.access.read[0]: unknown placeholder {model}`},
		{minimal(`"acp":[]`), `"acp" is not an object`},
		{minimal(`"acp":{"prompt":""}`), `acp: unknown member "prompt" (known: args, access,`},
		{minimal(`"acp":{"args":[],"args":[]}`), `acp: member "args" is repeated`},
		{minimal(`"acp":{"meta":[]}`), `acp: member "meta" is not an object`},
		{minimal(`"acp":{"meta":{"a":1,"a":2}}`), `acp: member "meta" is not an object`},
		{minimal(`"acp":{"access":{"read":{"modes":"x"}}}`), `acp: access: unknown member "modes"`},
		{minimal(`"access":{"read":{"args":null}},"args":["{access}"]`), `access: member "args" is not a list`},
		{minimal(`"access":{"read":7},"args":["{access}"]`), `"access" is not an object`},
		{minimal(`"access":{"read":{}}`), `args: "access" needs {access}`},
		{minimal(`"access":{"read":{"mode":"plan"}}`), `args: "access" needs {access}`},
		{minimal(`"access":{"read":{"env":{"A B":"1"}}}`), `access.read: "A B" is not the name`},
		{minimal(`"access":{"read":{"option":"x"}},"args":["{access}"]`), `access.read: mode and accept_edits are for an access`},
		{minimal(`"access":{"read":{"files":{"a":"b"}}}`), `access.read: files need "home"`},
		{minimal(`"access":{"read":{"env":{"A":"1"}}},"efforts":{"low":{"env":{"A":"2"}}}`), "the variable A is also set by an effort"},
		{minimal(`"efforts":{"low":["-l"]}`), `args: "efforts" needs {effort}`},
		{minimal(`"efforts":{"huge":["-l"]},"args":["{effort}"]`), `efforts: model reasoning effort "huge" is not one of`},
		{minimal(`"efforts":{"low":{"mode":"x"}},"args":["{effort}"]`), `efforts.low: mode and accept_edits`},
		{minimal(`"args":["{effort}"]`), `{effort} needs "efforts"`},
		{minimal(`"args":["{continue}"]`), `{continue} needs "continue"`},
		{minimal(`"continue":["-c"]`), `"continue" needs {continue}`},
		{minimal(`"continue":["--"],"args":["{continue}"]`), `continue[0]: "--" would end`},
		{minimal(`"args":["a{home}"]`), `{home} needs "home"`},
		{minimal(`"continue":["{home}"],"args":["{continue}"]`), "continue[0]: unknown placeholder {home}"},
		{minimal(`"failures":[{"kind":"bored","contains":["x"]}]`), `failures[0]: kind: "bored" is not one of authentication, quota, idle_timeout`},
		{minimal(`"failures":[{"contains":["x"]}]`), "failures[0]: kind is missing"},
		{minimal(`"failures":[{"kind":"quota"}]`), "neither exit_codes nor contains"},
		{minimal(`"failures":[{"kind":"quota","exit_codes":[0]}]`), "from 1 to 255"},
		{minimal(`"failures":[{"kind":"quota","exit_codes":["1"]}]`), `failures: member "exit_codes" is not a list of numbers`},
		{minimal(`"failures":[{"kind":"quota","contains":[" "]}]`), "is empty"},
		{minimal(`"failures":[null]`), `"failures" is not a list of objects`},
		{minimal(`"home":{"env":"MINE_HOME"},"instructions":"none"`), "home: it needs instructions"},
		{minimal(`"home":{}`), "home: it needs env, or {home}"},
		{minimal(`"home":{"env":"HOME"}`), "home.env: HOME is needed by every program"},
		{minimal(`"home":{"env":"A=b"}`), "home.env"},
		{minimal(`"home":{"env":"M","folder":"../x"}`), "home.folder"},
		{minimal(`"home":{"env":"M","logins":["/etc/passwd"]}`), "home.logins"},
		{minimal(`"home":{"env":"M","files":{"../x":""}}`), `home.files: "../x" is not a path`},
		{minimal(`"home":{"env":"M","files":{"auth/x":""},"logins":["auth"]}`), `"auth/x" is a login`},
		{minimal(`"home":{"env":"M","sessions":["*"]}`), "home.sessions"},
		{minimal(`"home":{"env":"M","sessions":["a/*","b/*"]}`), `home.sessions: "b/*"`},
		{minimal(`"home":{"env":"M","sessions":["a/[b"]}`), "home.sessions"},
		{minimal(`"home":{"env":"M","sessions":["a/../../b"]}`), "home.sessions"},
		{minimal(`"home":{"env":"M"},"args":["{resume}"]`), "need sessions"},
		{minimal(`"home":{"env":"M"},"env":{"M":"1"}`), "env: M is the variable of the home"},
		{minimal(`"home":{"env":"M"},"access":{"read":{"env":{"M":"1"}}}`), "access.read: M is the variable of the home"},
		{minimal(`"output":"ndjson:none"`), "names no runtime"},
		{minimal(`"output":"ndjson:absent"`), `"ndjson:absent" cannot be used: build with it`},
		{minimal(`"output":"xml"`), `"xml" is neither`},
		{minimal(`"instructions":"maybe"`), "is not one of prompt, native, none"},
		{minimal(`"executed":["../x"]`), "executed[0]"},
		{minimal(`"reads":["X.md","../x"]`), "reads[1]"},
		{minimal(`"reads":["a[/b"]`), "reads[0]"},
		{minimal(`"reads":["a/**"]`), "reads[0]"},
		{minimal(`"reads":["a\u0007"]`), "reads[0]"},
		{minimal(`"executed":["/etc/x"]`), "executed[0]"},
		{minimal(`"token_env":["A=b"]`), "token_env[0]"},
		{minimal(`"token_env":["HOME"]`), "token_env[0]: HOME"},
		{minimal(`"env":{"A B":"1"}`), `env: "A B" is not the name`},
		{minimal(`"env":{"BUS_AGENT_RUN":null}`), "env: BUS_AGENT_RUN is how a run"},
		{minimal(`"env":{"A":1}`), `"env" is not an object`},
		{minimal(`"env":{"HOME":"home"}`), "env: the value of HOME must be an absolute path"},
		{minimal(`"env":{"BASH_ENV":"./x"}`), "env: the value of BASH_ENV must be"},
		{minimal(`"env":{"SECRET":"hidden\u0000"}`), "env: the value of SECRET has a NUL"},
		{`{"executables":["/bin/sh"],"install_url":"https://x"}`, "executables[0]: \"/bin/sh\" must be a plain name"},
		{`{"executables":[".."],"install_url":"https://x"}`, "executables[0]"},
		{`{"executables":[null],"install_url":"https://x"}`, `"executables" is not a list`},
		{`{"executables":["x"],"install_url":"javascript:x"}`, "install_url"},
		{`{"executables":["x"],"install_url":"https:///x"}`, "install_url"},
		{`{"executables":["x"],"install_url":"https://x\n"}`, "install_url"},
	} {
		_, err := Runtime("mine", []byte(c.description), known(t))
		if !errors.Is(err, agent.ErrUsage) || !strings.HasPrefix(err.Error(), "definition of runtime mine: ") || !strings.Contains(err.Error(), c.text) {
			t.Errorf("Runtime(%.80s) = %v, want a usage error with %q", c.description, err, c.text)
		}
		if err != nil && (len(err.Error()) > 512 || strings.ContainsFunc(err.Error(), unicode.IsControl)) {
			t.Errorf("the error is not one short line: %d bytes", len(err.Error()))
		}
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("the error shows the value of a variable: %v", err)
		}
	}
	for id, text := range map[string]string{"Mine": "must match", "": "must match", "known": "built in", "a:b": "must match"} {
		if _, err := Runtime(id, []byte(minimal("")), known(t)); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), text) {
			t.Errorf("Runtime(%q) = %v, want a usage error with %q", id, err, text)
		}
	}
}

func TestDescribedFacts(t *testing.T) {
	t.Parallel()
	plain := described(t, "")
	if plain.Name != "mine" || plain.ReportsResult || plain.Recognize != nil || plain.PromptLimit != (registry.Limit{}) {
		t.Errorf("plain = %+v", plain)
	}
	if diff := cmp.Diff(registry.Options{Access: []agent.Access{agent.AccessWrite}}, plain.Run.Options); diff != "" {
		t.Error(diff)
	}
	rich := described(t, `"name":"Mine","output":"ndjson:known","prompt":"argument","instructions":"none",
		"args":["{access}","{effort}","-m{model}","-r{resume}","-i{idle-timeout}","--","{prompt}"],"access":{"full":[],"read":[]},"efforts":{"high":["-h"],"minimal":["-m"]}`)
	if rich.Name != "Mine" || !rich.ReportsResult || !rich.TokenOnly || rich.ExitFailure(&agent.ExitError{Code: 1}) != agent.FailureQuota || rich.Instructions != nil || rich.PromptLimit.Bytes != 131070 {
		t.Errorf("rich = %+v", rich)
	}
	want := registry.Options{Model: true, Efforts: []agent.ReasoningEffort{agent.EffortMinimal, agent.EffortHigh}, Resume: true, IdleTimeout: true, Access: []agent.Access{agent.AccessRead, agent.AccessFull}}
	if diff := cmp.Diff(want, rich.Run.Options); diff != "" {
		t.Error(diff)
	}
}

// prepareIn runs the adapter in a workdir with an AGENTS.md.
func prepareIn(t *testing.T, rt registry.Runtime, dir string, req registry.Invocation) (registry.Setup, error) {
	t.Helper()
	w := backendtest.Workspace(t, dir)
	chain := w.Chain()
	req.Workdir, req.Root = chain.Workdir, chain.Root
	return rt.Run.Prepare(t.Context(), req, w)
}

func TestDescribedInstructions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const rules = "be brief\n"
	if err := os.WriteFile(filepath.Join(dir, instructions.FileName), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	const argument = `"args":["--","{prompt}"],"prompt":"argument"`
	const file = `"args":["{prompt-file}"],"prompt":"file"`
	for name, c := range map[string]struct {
		members  string
		prefix   bool
		file     string // the end of the prompt file, where there is one
		warnings int
		prompt   string
		resume   string
		required bool
	}{
		"in the prompt":      {members: "", prefix: true},
		"in its session":     {members: "", resume: "s"},
		"required again":     {members: "", resume: "s", required: true, prefix: true},
		"native":             {members: `"instructions":"native"`},
		"in the argument":    {members: argument, prefix: true},
		"no room":            {members: argument, prompt: strings.Repeat("x", maxArgument-10), warnings: 1},
		"in the file":        {members: file, prefix: true, file: "do it"},
		"native with a file": {members: file + `,"instructions":"native"`, file: "do it"},
		"none with a file":   {members: file + `,"instructions":"none"`, file: "do it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := registry.Invocation{Prompt: "do it", Resume: c.resume, RequireInstructions: c.required}
			if c.prompt != "" {
				req.Prompt = c.prompt
			}
			rt := described(t, c.members)
			setup, err := prepareIn(t, rt, dir, req)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(setup.Prefix, rules) != c.prefix || len(setup.Warnings) != c.warnings || setup.Resume != "" {
				t.Errorf("setup = %+v", setup)
			}
			req = req.With(setup)
			req.Prompt = setup.Prefix + req.Prompt
			command, err := rt.Run.Command(req)
			if err != nil {
				t.Error(err)
			}
			if c.file == "" && len(command.Files) > 0 || c.file != "" && (len(command.Files) != 1 || string(command.Files[0]) != setup.Prefix+c.file) {
				t.Errorf("files = %q", command.Files)
			}
		})
	}
	for _, members := range []string{argument} {
		req := registry.Invocation{Prompt: strings.Repeat("x", maxArgument-10), RequireInstructions: true}
		if _, err := prepareIn(t, described(t, members), dir, req); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "required") {
			t.Errorf("Prepare(%s) = %v, want a usage error", members, err)
		}
	}
}

func TestDescribedRefusesWhatTheCLIWouldRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rt := described(t, `"executed":[".mine/hooks.json"],"instructions":"none"`)
	if _, err := prepareIn(t, rt, dir, registry.Invocation{Prompt: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".mine", "hooks.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := prepareIn(t, rt, dir, registry.Invocation{Prompt: "x"}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), filepath.Join(".mine", "hooks.json")) {
		t.Errorf("Prepare = %v, want a usage error that names the file", err)
	}
	if _, err := prepareIn(t, rt, dir, registry.Invocation{Prompt: "x", TrustWorkspace: true}); err != nil {
		t.Errorf("trusted: %v", err)
	}
}

// CLIs look above the repository too, where only the home is the user's own.
func TestDescribedRefusesWhatTheCLIWouldRunFromAbove(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	repo := filepath.Join(home, "code", "repo")
	for _, dir := range []string{filepath.Join(home, ".mine"), filepath.Join(repo, ".git")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rt := described(t, `"executed":[".mine/hooks.json",".env"],"instructions":"none"`)
	req := registry.Invocation{Prompt: "x"}
	req.Environ = []string{"HOME=" + home}
	plant := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plant(filepath.Join(home, ".mine", "hooks.json"))
	if _, err := prepareIn(t, rt, repo, req); err != nil {
		t.Errorf("the user's own file: %v", err)
	}
	above := filepath.Join(home, "code", ".env")
	plant(above)
	if _, err := prepareIn(t, rt, repo, req); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), filepath.Join("code", ".env")) {
		t.Errorf("Prepare = %v, want a usage error that names %s", err, above)
	}
	if err := os.Remove(above); err != nil {
		t.Fatal(err)
	}
	req.Environ = nil
	if _, err := prepareIn(t, rt, repo, req); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("without a home: %v, want a usage error", err)
	}
}

func FuzzDefinition(f *testing.F) {
	for _, members := range []string{
		"", `"reads":["X.md",".x/skills/*/SKILL.md"]`, `"name":"x","token_env":["A"],"env":{"A":null,"B":"c"},"executed":["a/b"]`,
		`"args":["-x",["--model","{model}"],"--","{prompt}"],"prompt":"argument","slash_commands":true`,
		`"args":["{access}","{workdir}","{prompt-file}"],"prompt":"file","access":{"read":["a"],"write":[["b","{workdir}"]]}`,
		`"output":"ndjson:known","instructions":"native"`, `"acp":{"args":["--acp","{access}"]},"access":{"full":{"args":["-y"],"mode":"yolo"}},"args":["{access}"]`,
		`"home":{"env":"M","sessions":["s/*"],"files":{"a":"b"}},"failures":[{"kind":"quota","contains":["429"]}],"silence_fails":true`,
		`"output":"acp","acp":{"models":true},"efforts":{"low":{"option":"l"}}`, `"args":[null]`, `"access":{"read":null}`,
	} {
		f.Add([]byte(minimal(members)))
	}
	f.Fuzz(func(t *testing.T, description []byte) {
		r := known(t)
		rt, err := Runtime("mine", description, r)
		if err != nil {
			if !errors.Is(err, agent.ErrUsage) || strings.ContainsAny(fmt.Sprint(err), "\n\x1b") {
				t.Fatalf("not a usage error of one line: %q", err)
			}
			return
		}
		if err := r.Register(rt); err != nil {
			t.Fatal(err)
		}
		if rt.Run.Command == nil {
			return
		}
		req := registry.Invocation{Prompt: "-p /{model}", Model: "m", Resume: "s", Workdir: "/w", Access: rt.Run.Options.Access[0]}
		command, err := rt.Run.Command(req)
		if err != nil {
			t.Fatal(err)
		}
		for i, arg := range command.Args {
			if strings.ContainsRune(arg, 0) {
				t.Fatalf("argument %q has a NUL", arg)
			}
			if rt.PromptLimit.Bytes > 0 && strings.Contains(arg, req.Prompt) && !slices.Contains(command.Args[:i], "--") {
				t.Fatalf("the prompt can be taken for an option: %q", command.Args)
			}
		}
	})
}

func TestDescribedReads(t *testing.T) {
	t.Parallel()
	for definition, want := range map[string]string{
		`"reads":["X.md",".x/skills/*/SKILL.md"]`: "X.md .x/skills/*/SKILL.md",
		`"instructions":"native"`:                 "AGENTS.md",
		`"instructions":"none"`:                   "",
	} {
		rt := described(t, definition)
		var names []string
		for _, r := range rt.Reads(registry.Invocation{}) {
			if names = append(names, r.Name); r.Where != instructions.Everywhere || !r.Imports || r.Trusted {
				t.Errorf("%s: %+v", definition, r)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: reads %q, want %q", definition, got, want)
		}
	}
}

func TestHasWord(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, word string
		want       bool
	}{
		{"1.json", "1", true}, {"s-1.json", "1", true}, {"12.json", "1", false}, {"21.json", "1", false},
		{"12-1.json", "1", true}, {"ä1", "1", false}, {"1", "1", true}, {"", "1", false}, {"x", "", true},
		{"11.json", "11", true}, {"111-11", "11", true}, {"é", "\xa9", true},
	} {
		if got := hasWord(test.name, test.word); got != test.want {
			t.Errorf("hasWord(%q, %q) = %t", test.name, test.word, got)
		}
	}
}
