package closeout_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-integration-task/closeout"
)

// What a command line proves when it has exited with 0.
func TestTestsAreSeen(t *testing.T) {
	t.Parallel()
	const (
		passes = ""
		none   = "no tests run"
		hidden = "no tests run with a visible exit code"
	)
	for line, want := range map[string]string{
		"go test ./...":                                     passes,
		"cd a && FOO=1 go test ./... 2>&1 >out":             passes,
		"set -o pipefail; go test ./... | tail":             passes,
		"bash -o pipefail -c 'go test ./... | tail'":        passes,
		"timeout 60 bash -lc \"go vet ./... && go test .\"": passes,
		"cat x | pytest -":                                  passes,
		"(cd a; npm run test)":                              passes,
		"time make check":                                   passes,
		"sh test.sh":                                        passes,

		"set -e\ngo test ./...\necho done":                       passes,
		"set -euo pipefail; go vet ./... | cat; make test; true": passes,
		"set -e; set +e; make test; true":                        hidden,
		"set -e; true && make test; true":                        hidden,
		"(set -e; make test; true)":                              hidden,
		"make() { true; }; make test":                            hidden,
		"go test ./... | tail":                                   hidden,
		"go test ./... || true":                                  hidden,
		"true || go test ./...":                                  hidden,
		"go test ./...; echo done":                               hidden,
		"go test ./... &":                                        hidden,
		"! go test ./...":                                        hidden,
		"exit 0 && go test ./...":                                hidden,
		"bash -c 'exit 0; go test ./...'":                        hidden,
		"bash -lc 'go test ./... || true'":                       hidden,
		"env A=b bash -c 'go test ./... | tail'":                 hidden,
		"bash -ec 'bash -c \"go test; true\"'":                   hidden,
		"set -o pipefail; set +o pipefail; make test|cat":        hidden,

		"echo go test ./...":               none,
		"# go test ./...":                  none,
		"true # go test":                   none,
		"test -f go.mod":                   none,
		"[ -f test ]":                      none,
		"cat <<E\ngo test ./...\nE":        none,
		"go run ./cmd/latest":              none,
		"grep -r test .":                   none,
		"if false; then go test ./...; fi": none,
		"f() { go test ./...; }; true":     none,
		"go test ./... '":                  none,
		"bash -c 'go test \"'":             none,
		"make":                             none,
		"":                                 none,

		"./gradlew -p app :lib:test":                   passes,
		"mvn -q -pl core verify":                       passes,
		"npm --prefix web run test:unit":               passes,
		"npm t":                                        passes,
		"pnpm -w --filter web lint":                    passes,
		"yarn workspace build test":                    passes,
		"npx --yes @biomejs/biome check .":             passes,
		"bundle exec rspec":                            passes,
		"uv run --with x python -m pytest -x -k build": passes,
		"coverage run -m pytest":                       passes,
		"python3 -m unittest discover":                 passes,
		"python manage.py test app":                    passes,
		"node --test":                                  passes,
		"go run gotest.tools/gotestsum@v1 ./...":       passes,
		"go -C sub vet ./...":                          passes,
		"go tool staticcheck ./...":                    passes,
		"cargo +nightly clippy -- -D warnings":         passes,
		"docker compose run --rm app make -C sub test": passes,
		"prettier --check .":                           passes,
		"cmake --build out --target test":              passes,
		"tests/run.sh":                                 passes,
		"./x check":                                    passes,
		"nice -n 10 env A=b golangci-lint run":         passes,
		"pre-commit run --all-files":                   passes,

		"docker exec c env docker run image pytest":    passes,
		strings.Repeat("docker run ", 1000) + "pytest": passes,
		strings.Repeat("env docker run ", 1000) + "x":  none,

		"pip install pytest":                       none,
		"python -m pip install pytest":             none,
		"npm install --save-dev jest":              none,
		"npm pkg get scripts.test":                 none,
		"npx playwright install":                   none,
		"apt-get install -y shellcheck":            none,
		"cargo install cargo-nextest":              none,
		"go build ./test/...":                      none,
		"go list ./test":                           none,
		"go help test":                             none,
		"go mod edit -require=example.com/test@v1": none,
		"go test -run XXX ./...":                   none,
		"go test -run='^$' ./...":                  none,
		"go test -list . ./...":                    none,
		"go test -c ./...":                         none,
		"docker build -t test .":                   none,
		"docker run test-image":                    passes,
		"pytest --version":                         none,
		"pytest --collect-only":                    none,
		"golangci-lint --version":                  none,
		"golangci-lint linters":                    none,
		"make -n test":                             none,
		"make -kn check":                           none,
		"make -C test":                             none,
		"make CHECK=test":                          none,
		"mvn -DskipTests=true verify":              none,
		"gradle -x test build":                     none,
		"cargo test --no-run":                      none,
		"python3 -c 'print(\"test\")'":             none,
		"python3 gen.py":                           none,
		"gofmt -l test":                            none,
		"dd if=/dev/null of=test":                  none,
		"wait test":                                none,
		"nice":                                     none,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			report, work := honest()
			report.RequiredChecks = nil
			work.Commands = []closeout.Command{ran(line)}
			got := closeout.Judge(report, *work)
			switch {
			case want == passes && got.Outcome != closeout.Done,
				want == none && got.Reason != none,
				want == hidden && !strings.HasPrefix(got.Reason, hidden):
				t.Errorf("got %q, want %q", got.Reason, want)
			}
		})
	}
}

// A claimed check is confirmed by the same command only.
func TestChecksAreConfirmed(t *testing.T) {
	t.Parallel()
	long := "go test ./" + strings.Repeat("x", closeout.MaxCommand)
	for _, c := range []struct {
		claim string
		seen  []closeout.Command
		want  bool
	}{
		{"go test ./...", []closeout.Command{ran("cd a && go test   ./... 2>&1")}, true},
		{"cd a && go test ./...", []closeout.Command{ran("go test './...'")}, true},
		{"go vet ./... && go test ./...", []closeout.Command{ran("go vet ./..."), ran("go test ./...")}, true},
		{"go test ./...", []closeout.Command{ran("timeout 60 go test ./...")}, true},
		{"git diff --exit-code", []closeout.Command{ran("git diff --exit-code"), ran("go test .")}, true},
		{"go test ./...", []closeout.Command{ran("go test ./..."), ran("go test ./... | tail")}, true},

		{"go vet ./... && go test ./...", []closeout.Command{ran("go test ./...")}, false},
		{"go test ./...", []closeout.Command{ran("go test ./a")}, false},
		{"go test ./...", []closeout.Command{ran("make test"), ran("echo go test ./...")}, false},
		{"go test ./...", []closeout.Command{ran("go test ./..."), fell("go test ./...")}, false},
		{"go test ./...", []closeout.Command{ran("go test ./... | tail")}, false},
		{"", []closeout.Command{ran("go test ./...")}, false},
		{"'", []closeout.Command{ran("go test ./...")}, false},
		{"go test ./...", []closeout.Command{ran("if ! command -v go; then exit 0; fi; go test ./...")}, false},
		{"go test ./...", []closeout.Command{ran("while :; do exit 0; done; go test ./...")}, false},
		{"go test ./...", []closeout.Command{ran("command exit 0; go test ./...")}, false},
		{"go test ./...", []closeout.Command{ran("builtin exit 0; go test ./...")}, false},
		{"go test ./...", []closeout.Command{ran("command -p exec true; go test ./...")}, false},
		{"go test ./...", []closeout.Command{ran("(set -e); go test ./...; true")}, false},
		{"go test ./...", []closeout.Command{ran("false && set -e; go test ./...; true")}, false},
		{"go test ./...", []closeout.Command{ran("set -e | cat; go test ./...; true")}, false},
		{"go test ./...", []closeout.Command{ran("set -e & go test ./...; true")}, false},
		{"go test ./...", []closeout.Command{ran("set -e; set +o errexit; go test ./...; true")}, false},
		{"go test ./...", []closeout.Command{ran("set -- -e; go test ./...; true")}, false},
		{"go test ./...", []closeout.Command{ran("set -e; if true; then set +e; fi; go test ./...; true")}, false},
		{"go test ./...", []closeout.Command{ran("x=+e; set -e; set $x; go test ./...; true")}, false},
		{"go test ./...", []closeout.Command{ran(strings.Repeat(":;", 300) + "go test ./...")}, false},

		{"go test ./...", []closeout.Command{ran("set -o errexit; go test ./...; true")}, true},
		{"go test ./...", []closeout.Command{ran("set -e && cd a; go test ./...; true")}, true},
		{"go test ./...", []closeout.Command{ran("if [ -f go.mod ]; then echo module; fi; go test ./...")}, true},
		{"go test ./...", []closeout.Command{ran("for d in a b; do [ -d $d ] || continue; (cd $d; exit 1); done; go test ./...")}, true},
		{"go test ./...", []closeout.Command{ran("export DIR=$(exit 0); go test ./...")}, true},

		{long, []closeout.Command{ran(long)}, false},
		{strings.Repeat("((", 1<<19), []closeout.Command{ran("go test ./...")}, false},
	} {
		report, work := honest()
		report.RequiredChecks = []closeout.Check{{Command: c.claim}}
		work.Commands = c.seen
		got := closeout.Judge(report, *work)
		if unseen := strings.Contains(got.Reason, "not seen to pass"); unseen == c.want {
			t.Errorf("%.100q by %.100v: %.200s", c.claim, c.seen, got.Reason)
		}
	}
}

func TestCommandLog(t *testing.T) {
	t.Parallel()
	call := func(id, input string) *agent.Event {
		return &agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: id, Input: json.RawMessage(input)}}
	}
	result := func(id string, failed bool, code *int) *agent.Event {
		return &agent.Event{Kind: agent.KindToolResult, Failed: failed, Tool: &agent.Tool{ID: id, ExitCode: code}}
	}
	var log closeout.CommandLog
	for _, e := range []*agent.Event{
		{Kind: agent.KindText, Text: "hello"},
		call("1", `{"command":"go test ./..."}`),
		call("2", `{"command":["bash","-lc","echo 'a b'"]}`),
		call("3", `{"command":"sleep 9","run_in_background":true}`),
		call("4", `{"path":"x"}`),
		call("5", `{"command":"never ends"}`),
		call("6", `[]`),
		result("2", false, new(0)),
		result("1", false, new(1)),
		result("3", false, nil),
		result("4", false, nil),
		result("9", false, nil),
		call("7", `{"command":"make"}`),
		result("7", true, nil),
		call("8", `{"command":"ls"}`),
		result("8", false, nil),
		call("10", `{"command":"`+strings.Repeat("x", closeout.MaxCommand+1)+`"}`),
		result("10", false, new(0)),
		call("11", `{"command":["a\u0000b"]}`),
		result("11", false, nil),
	} {
		log.Add(e)
	}
	got := log.Commands()
	want := []closeout.Command{
		{Line: `bash -lc "echo 'a b'"`, Passed: true, ExitCode: new(0)},
		{Line: "go test ./...", ExitCode: new(1)},
		{Line: "make"},
		{Line: "ls", Passed: true},
		{Line: strings.Repeat("x", closeout.MaxCommand-len("…")) + "…", ExitCode: new(0)},
	}
	for i, c := range got {
		if c.Ended.IsZero() {
			t.Errorf("the end of %q is not known", c.Line)
		}
		got[i].Ended = time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range closeout.MaxCommands {
		log.Add(call("x", fmt.Sprintf(`{"command":"%d"}`, i)))
		log.Add(result("x", false, nil))
	}
	got = log.Commands()
	if len(got) != closeout.MaxCommands || got[0].Line != "0" {
		t.Errorf("%d commands, the first is %q", len(got), got[0].Line)
	}
}

func TestPlanItems(t *testing.T) {
	t.Parallel()
	text := "# Plan\n\n- [ ] one\n  * [ ]  two   words\n- [x] done\n1. [X] this  too\nsee [x] here\n1. [ ] three\nsee [ ] here\n- [ ]four\n12) [ ] five\na. [ ] no\n- plain\n"
	want := closeout.Items{Exists: true, Open: []string{"one", "two words", "three", "four", "five"}, Checked: []string{"done", "this too"}}
	if diff := cmp.Diff(want, closeout.PlanItems(text)); diff != "" {
		t.Error(diff)
	}
	if got := len(closeout.PlanItems(strings.Repeat("- [ ] x\n", 20_000)).Open); got != 10_000 {
		t.Errorf("%d items", got)
	}
}
