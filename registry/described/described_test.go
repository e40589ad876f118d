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
		ExitFailure:   func(int) agent.Failure { return agent.FailureQuota },
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
		{minimal(`"args":["a","{home}"]`), "args[1]: unknown placeholder {home}"},
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
		{minimal(`"output":"acp","prompt":"file"`), "needs {prompt-file}"},
		{minimal(`"output":"acp","prompt":"file","args":["{prompt-file}"]`), `prompt: "file" is of no use`},
		{minimal(`"output":"acp","args":["--resume={resume}"]`), "{resume} is of no use"},
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
		"args":["{access}","-m{model}","-r{resume}","-i{idle-timeout}","--","{prompt}"],"access":{"full":[],"read":[]}`)
	if rich.Name != "Mine" || !rich.ReportsResult || !rich.TokenOnly || rich.ExitFailure(1) != agent.FailureQuota || rich.Instructions != nil || rich.PromptLimit.Bytes != 131070 {
		t.Errorf("rich = %+v", rich)
	}
	want := registry.Options{Model: true, Resume: true, IdleTimeout: true, Access: []agent.Access{agent.AccessRead, agent.AccessFull}}
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
	}{
		"in the prompt":      {members: "", prefix: true},
		"native":             {members: `"instructions":"native"`},
		"in the argument":    {members: argument, prefix: true},
		"no room":            {members: argument, prompt: strings.Repeat("x", maxArgument-10), warnings: 1},
		"in the file":        {members: file, prefix: true, file: "do it"},
		"native with a file": {members: file + `,"instructions":"native"`, file: "do it"},
		"none with a file":   {members: file + `,"instructions":"none"`, file: "do it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := registry.Invocation{Prompt: "do it", Resume: "s"}
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
		`"output":"ndjson:known","instructions":"native"`, `"args":[null]`, `"access":{"read":null}`,
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
