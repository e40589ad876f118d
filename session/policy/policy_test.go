package policy_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/policy"
)

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`{"kind":"read","decision":"accept"},`, policy.MaxRules+1)
	for text, want := range map[string]string{
		``:                            "unexpected end",
		`null`:                        "null",
		`[]`:                          "is not of the right type",
		`{} {}`:                       "invalid character",
		`{"rule":[]}`:                 "unknown field",
		`{"Rules":[]}`:                "unknown field",
		`{"rules":[],"rules":0}`:      "repeated",
		`{"default":"accept"}`:        "the default",
		`{"rules":[{"kind":"read"}]}`: "rule 1: the decision",
		`{"rules":[{"decision":"accept_for_session","kind":"read"}]}`:               "rule 1: the decision",
		`{"rules":[{"decision":"accept"}]}`:                                         "without a kind",
		`{"rules":[{"decision":"accept","path":"a"}]}`:                              "without a kind",
		`{"rules":[{"decision":"ask","kind":"write"}]}`:                             "not a kind",
		`{"rules":[{"decision":"ask","path":"a","command":["b"]}]}`:                 "two rules",
		`{"rules":[{"decision":"ask","path":"a","kind":"execute"}]}`:                "a path is for",
		`{"rules":[{"decision":"ask","command":["b"],"kind":"edit"}]}`:              "a command is for",
		`{"rules":[{"decision":"ask","command":[]}]}`:                               "empty word",
		`{"rules":[{"decision":"ask","command":["git",""]}]}`:                       "empty word",
		`{"rules":[{"decision":"ask","command":"git"}]}`:                            "is not of the right type",
		`{"rules":[{"decision":"ask","path":"../a"}]}`:                              "..",
		`{"rules":[{"decision":"ask","path":"~/a"}]}`:                               "write it out",
		`{"rules":[{"decision":"ask","path":"a\\b"}]}`:                              "backslash",
		`{"rules":[{"decision":"ask","path":"a*/"}]}`:                               "/**",
		`{"rules":[{"decision":"ask","path":"a["}]}`:                                "syntax error",
		`{"rules":[{"decision":"ask","path":"a\u0000"}]}`:                           "zero byte",
		`{"rules":[{"decision":"ask","path":"*` + strings.Repeat("/a", 40) + `"}]}`: "more than 32",
		`{"rules":[` + strings.TrimSuffix(many, ",") + `]}`:                         "the limit is",
		`{"default":"` + strings.Repeat(" ", policy.MaxSize) + `"}`:                 "larger",
	} {
		if _, err := policy.Parse([]byte(text)); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

// ground is a workdir with files and links to outside.
func ground(t testing.TB) (start engine.Start, outside string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	workdir, outside := filepath.Join(root, "work"), filepath.Join(root, "outside")
	for _, dir := range []string{"work/src", "work/.git/hooks", "work/tool", "outside/in"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"work/src/a.go", "work/.env", "outside/secret", "outside/in/a"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"work/out": outside, "work/src/link.go": outside + "/secret", "work/env": ".env", "alias": workdir} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(outside+"/secret", workdir+"/src/hard.go"); err != nil {
		t.Fatal(err)
	}
	return engine.Start{Workdir: workdir, Access: agent.AccessWrite, Protected: []string{".agent"}}, outside
}

// An answer is a decision and the number of its rule: "accept 1".
func decide(t testing.TB, p *policy.Policy, tool *agent.Tool, start engine.Start) string {
	t.Helper()
	a := p.Decide(tool, start)
	text, err := json.Marshal([]any{a.Decision, a.Rule})
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("[", "", "]", "", `"`, "", ",", " ").Replace(string(text))
}

func TestFiles(t *testing.T) {
	t.Parallel()
	start, outside := ground(t)
	p := parse(t, `{"rules": [
		{"kind": "edit", "path": "src/", "decision": "accept"},
		{"kind": "edit", "path": "src/**/*.go", "decision": "ask"},
		{"kind": "edit", "path": "src/made/", "decision": "ask"},
		{"kind": "edit", "path": "src/made/yes", "decision": "accept"},
		{"kind": "edit", "path": "`+outside+`/in/", "decision": "accept"},
		{"path": "**/.env", "decision": "decline"},
		{"kind": "edit", "path": "out/", "decision": "accept"},
		{"kind": "edit", "path": "**/tool/**", "decision": "accept"},
		{"kind": "edit", "path": "tool/not", "decision": "decline"},
		{"kind": "read", "decision": "accept"},
		{"kind": "edit", "path": ".git/", "decision": "accept"}
	]}`)
	deep := "src/" + strings.Repeat("a/", 300) + "x"
	for _, test := range []struct {
		kind  agent.ToolKind
		files string // separated by line breaks
		want  string
	}{
		{agent.ToolEdit, "src/a.go", "accept 1"}, // a folder before a pattern
		{agent.ToolEdit, start.Workdir + "/src/new", "accept 1"},
		{agent.ToolEdit, "src", "ask 0"}, // not a file
		{agent.ToolEdit, "src/made/no", "ask 3"},
		{agent.ToolEdit, "src/made/yes", "accept 4"},
		{agent.ToolEdit, "src/made/yes\nsrc/new", "accept 4"},
		{agent.ToolEdit, "src/made/yes\nsrc/made/no", "ask 3"},
		{agent.ToolEdit, "src/new\nother", "ask 0"},
		{agent.ToolEdit, "src/new\n.env", "decline 6"},
		{agent.ToolDelete, "src/a.go", "ask 0"},
		{agent.ToolDelete, ".env", "decline 6"},
		{agent.ToolOther, "src/a.go", "ask 0"},
		{"", "src/a.go", "ask 0"},
		{"write", "src/a.go", "ask 0"},

		{agent.ToolEdit, "src/../src/new", "accept 1"},
		{agent.ToolEdit, "src/../../outside/secret", "ask 0"},
		{agent.ToolEdit, "src/../.ENV", "decline 6"},
		{agent.ToolEdit, "src/.env", "accept 1"}, // a folder before a pattern, whatever they decide
		{agent.ToolEdit, "SRC/new", "ask 0"},
		{agent.ToolEdit, "src/link.go", "ask 2"},
		{agent.ToolEdit, "src/hard.go", "ask 2"},
		{agent.ToolEdit, "env", "decline 6"}, // a link to .env
		{agent.ToolEdit, "out/in/a", "accept 5"},
		{agent.ToolEdit, "out/secret", "ask 0"}, // a rule does not follow the link out
		{agent.ToolEdit, outside + "/in/new", "accept 5"},
		{agent.ToolEdit, filepath.Dir(outside) + "/alias/src/new", "accept 1"},
		{agent.ToolEdit, "tool/x/y", "accept 8"},
		{agent.ToolEdit, "tool/NOT", "decline 9"},
		{agent.ToolEdit, "ｔool/x", "ask 0"}, // not the letter t
		{agent.ToolEdit, "src\u200b/new", "ask 0"},
		{agent.ToolEdit, ".git/hooks/x", "ask 0"}, // protected
		{agent.ToolEdit, "src/.agent/x", "ask 0"},
		{agent.ToolEdit, "~/src/x", "ask 0"},
		{agent.ToolEdit, "$HOME/src/x", "ask 0"},
		{agent.ToolEdit, "file:///src/x", "ask 0"},
		{agent.ToolEdit, "src/%2e%2e/x", "ask 0"},
		{agent.ToolEdit, `src\x`, "ask 0"},
		{agent.ToolEdit, "src/x\x00", "ask 0"},
		{agent.ToolEdit, "src/x.", "ask 0"},
		{agent.ToolEdit, deep, "ask 0"},
		{agent.ToolEdit, "src/" + strings.Repeat("a", 5000), "ask 0"},
		{agent.ToolEdit, strings.Repeat("src/new\n", 500), "ask 0"},
		{agent.ToolEdit, "", "ask 0"},
		{agent.ToolRead, "/etc/passwd", "accept 10"},
		{agent.ToolRead, ".env", "decline 6"},
		{agent.ToolRead, "", "ask 0"},
		{agent.ToolRead, "~/x", "ask 0"},
	} {
		tool := &agent.Tool{Name: "t", Kind: test.kind, Files: strings.FieldsFunc(test.files, func(r rune) bool { return r == '\n' })}
		if got := decide(t, p, tool, start); got != test.want {
			t.Errorf("%s %.60q: %s, want %s", test.kind, test.files, got, test.want)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	start, _ := ground(t)
	p := parse(t, `{"rules": [
		{"command": ["git"], "decision": "decline"},
		{"command": ["git", "status"], "decision": "accept"},
		{"command": ["go", "test"], "decision": "accept"},
		{"command": ["rm"], "decision": "decline"},
		{"command": ["echo"], "decision": "accept"},
		{"kind": "edit", "decision": "accept"}
	]}`)
	for line, want := range map[string]string{
		"go test ./...":                  "accept 3",
		"go  test\t-run 'A|B' \"./x y\"": "accept 3",
		"go 'test'":                      "accept 3",
		"git status --short":             "accept 2",
		"git push":                       "decline 1",
		"git":                            "decline 1",
		"GIT push":                       "decline 1",
		"/usr/bin/git push":              "decline 1",
		"/usr/bin/git status":            "decline 1", // accept rules match the word itself
		"./go test":                      "ask 0",
		"gofmt -l":                       "ask 0",
		"go":                             "ask 0",
		"go testx":                       "ask 0",
		"gо test":                        "ask 0", // a letter of another alphabet
		"go\u00a0test":                   "ask 0",
		"go test\u200b":                  "ask 0",
		"go test && git status; echo done | echo": "accept 3",
		"go test\necho done\n":                    "accept 3",
		"go test &&\necho done;":                  "accept 3",
		"go test && make":                         "ask 0",
		"go test; rm -rf /":                       "decline 4",
		"go test\nrm -rf /":                       "decline 4",
		"go test || sudo -u root rm x":            "decline 4",
		"env A=1 rm x":                            "decline 4",
		"/bin/rm x":                               "decline 4",
		"go test & rm x":                          "decline 4",
		"go test & echo":                          "ask 0",
		"go test |& echo":                         "ask 0",
		"go test $(rm x)":                         "decline 4",
		"go test `rm x`":                          "decline 4",
		"echo \"$(rm x)\"":                        "decline 4",
		"echo \"`rm x`\"":                         "decline 4",
		"echo $HOME":                              "ask 0",
		"echo \"$HOME\"":                          "ask 0",
		"echo \"\\$HOME\"":                        "accept 5",
		"echo ${x:=1}":                            "ask 0",
		"echo $((1))":                             "ask 0",
		"echo $'a'":                               "ask 0",
		"echo *":                                  "ask 0",
		"echo a?":                                 "ask 0",
		"echo [a]":                                "ask 0",
		"echo {a,b}":                              "ask 0",
		"echo ~":                                  "ask 0",
		"echo =ls":                                "ask 0",
		"echo a=b":                                "accept 5",
		"echo > x":                                "ask 0",
		"echo 2>&1":                               "ask 0",
		"echo < x":                                "ask 0",
		"echo << E\nrm x\nE":                      "decline 4",
		"echo <(rm x)":                            "decline 4",
		"A=1 echo":                                "ask 0",
		"A=\"1\" echo":                            "ask 0",
		"\"A\"=1 echo":                            "ask 0",
		"A=1":                                     "ask 0",
		"echo # x":                                "ask 0",
		"echo a\\;b":                              "ask 0",
		"echo a\\\nb":                             "ask 0",
		"echo 'a\\' 'b; rm x'":                    "decline 4", // fish reads it as a quote inside of quotes
		"echo 'open":                              "ask 0",
		"echo \"open":                             "ask 0",
		"echo \"a!b\"":                            "ask 0",
		"echo 'a\u202eb'":                         "ask 0",
		"echo 'a\x00b'":                           "ask 0",
		"echo 'a\xffb'":                           "ask 0",
		"echo\rrm x":                              "decline 4",
		"! echo":                                  "ask 0",
		"{ echo; }":                               "ask 0",
		"(echo)":                                  "ask 0",
		"time echo":                               "ask 0",
		"if echo; then rm x; fi":                  "decline 4",
		"then echo":                               "ask 0",
		"echo ;; echo":                            "ask 0",
		"; echo":                                  "ask 0",
		"echo &&":                                 "ask 0",
		"echo |":                                  "ask 0",
		"'' echo":                                 "ask 0",
		"":                                        "ask 0",
		" \n":                                     "ask 0",
		"/bin/bash -lc 'go test ./...'":           "accept 3",
		"bash -c \"echo \\\"a b\\\" && go test\"": "accept 5",
		"bash -c 'echo; rm x'":                    "decline 4",
		"bash -c 'echo $(rm x)'":                  "decline 4",
		"bash -c 'bash -c echo'":                  "ask 0",
		"./bash -c echo":                          "ask 0",
		"/tmp/bash -c echo":                       "ask 0",
		"bash -c echo && bash -c echo":            "ask 0",
		"bash -xc echo":                           "ask 0",
		"echo " + strings.Repeat("a", 40<<10):     "ask 0",
		strings.Repeat("echo;", 300):              "ask 0",
		"rm " + strings.Repeat("a", 40<<10):       "decline 4",
	} {
		tool := &agent.Tool{Name: "t", Kind: agent.ToolExecute, Command: line}
		if got := decide(t, p, tool, start); got != want {
			t.Errorf("%.80q: %s, want %s", line, got, want)
		}
	}
}

// A rule for a whole kind accepts only what can be read.
func TestKinds(t *testing.T) {
	t.Parallel()
	start, _ := ground(t)
	p := parse(t, `{"rules": [
		{"kind": "execute", "decision": "accept"}, {"kind": "fetch", "decision": "accept"},
		{"kind": "edit", "decision": "accept"}, {"kind": "other", "decision": "ask"}, {"kind": "edit", "decision": "decline", "path": "**"}
	], "default": "decline"}`)
	for want, tools := range map[string][]*agent.Tool{
		"accept 1":  {{Kind: agent.ToolExecute, Command: "anything at all"}},
		"accept 2":  {{Kind: agent.ToolFetch}},
		"accept 3":  {{Kind: agent.ToolEdit, Files: []string{"/nowhere/x"}}},
		"ask 4":     {{Kind: agent.ToolOther, Name: "mcp__files__write", Files: []string{"src/a"}, Command: "ls"}},
		"decline 5": {{Kind: agent.ToolEdit, Files: []string{"src/new"}}},
		"decline 0": {nil, {}, {Name: "Bash", Command: "ls"}, {Kind: "mode"}, {Kind: agent.ToolExecute}, {Kind: agent.ToolExecute, Command: "a > b"},
			{Kind: agent.ToolEdit}, {Kind: agent.ToolRead, Files: []string{"src/a.go"}}},
	} {
		for _, tool := range tools {
			if got := decide(t, p, tool, start); got != want {
				t.Errorf("%+v: %s, want %s", tool, got, want)
			}
		}
	}
	if got := decide(t, nil, nil, start); got != "ask 0" {
		t.Errorf("without a policy: %s", got)
	}
	if got := decide(t, parse(t, `{}`), tools("execute", "ls"), engine.Start{}); got != "ask 0" {
		t.Errorf("with an empty policy: %s", got)
	}
}

func tools(kind agent.ToolKind, command string) *agent.Tool {
	return &agent.Tool{Kind: kind, Command: command}
}

// Of equally specific rules the stricter one decides, in any order.
func TestTies(t *testing.T) {
	t.Parallel()
	rules := []string{`{"command":["ls"],"decision":"accept"}`, `{"command":["ls"],"decision":"decline"}`, `{"command":["ls"],"decision":"ask"}`}
	for i := range rules {
		for k := range rules {
			p := parse(t, `{"rules":[`+rules[i]+","+rules[k]+`]}`)
			want := "accept"
			for _, d := range []string{"ask", "decline"} {
				if strings.Contains(rules[i]+rules[k], d) {
					want = d
				}
			}
			if got := p.Decide(tools(agent.ToolExecute, "ls"), engine.Start{}); got.Decision != want {
				t.Errorf("%s %s: %s, want %s", rules[i], rules[k], got.Decision, want)
			}
		}
	}
}

// FuzzDecide checks that a line is accepted only if it consists of the words of commands
// that a rule names, whatever else is in it.
func FuzzDecide(f *testing.F) {
	for _, seed := range []string{"ok", "ok a && ok b", "ok; rm x", "ok $(rm)", "ok 'a;b'", "bash -c 'ok; ok'", "A=1 ok", "ok \"a\\\"b\"", "ok\nok", "ok |", "ok 'a' \"b\"c"} {
		f.Add(seed)
	}
	p := parse(f, `{"rules":[{"command":["ok"],"decision":"accept"},{"command":["rm"],"decision":"decline"}]}`)
	f.Fuzz(func(t *testing.T, line string) {
		a := p.Decide(tools(agent.ToolExecute, line), engine.Start{})
		if a.Decision != "accept" {
			return
		}
		if m := wrapped.FindStringSubmatch(line); m != nil {
			line = unquote(m[1])
		}
		if !whole.MatchString(line) {
			t.Fatalf("%q is accepted", line)
		}
		for _, command := range simple.FindAllString(line, -1) {
			if got := unquote(word.FindString(command)); got != "ok" {
				t.Errorf("%q is accepted with the command %q", line, got)
			}
		}
	})
}

// The grammar of lines that are accepted, once more.
const (
	aWord   = `(?:[A-Za-z0-9_./:@,+%=-]|'[^'\\]*'|"(?:[^"\\$!\x60]|\\["\\$])*")+`
	aSimple = aWord + `(?:[ \t]+` + aWord + `)*`
)

var (
	word    = regexp.MustCompile(aWord)
	simple  = regexp.MustCompile(aSimple)
	whole   = regexp.MustCompile(`^[ \t\n]*` + aSimple + `(?:[ \t]*(?:&&|\|\||;|\||\n)[ \t\n]*` + aSimple + `)*[ \t]*(?:;|\n)?[ \t\n]*$`)
	wrapped = regexp.MustCompile(`^[ \t]*["']*(?:/bin/|/usr/bin/|/usr/local/bin/|/opt/homebrew/bin/)?["']*(?:bash|dash|sh|zsh)["']*[ \t]+["']*-l?c["']*[ \t]+(` + aWord + `)[ \t\n;]*$`)
)

// unquote returns a word without its quotes.
func unquote(word string) string {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '\\':
			i++
			b.WriteByte(word[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
