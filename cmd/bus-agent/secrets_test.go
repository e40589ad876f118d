package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// Secrets as they get to an agent: from the environment, by --env, and by the
// description of a runtime.
var (
	environSecrets = map[string]string{
		"OPENAI_API_KEY": "sk-environ-key-1111", "GITHUB_TOKEN": "ghp-environ-token-2222", "DB_SECRET": "db-environ-secret-3333",
		"lower_case_key": "lower-environ-key-4444",
	}
	callSecret      = "call-token-5555"
	describedSecret = "described-key-6666"
)

// secretsOf returns what a call must not show. What describes a runtime is shown
// with the settings, and only the runtime itself knows it else.
func secretsOf(args []string) []string {
	all := []string{callSecret}
	if slices.Contains(args, "mine") {
		all = append(all, describedSecret)
	}
	for _, value := range environSecrets {
		all = append(all, value)
	}
	return all
}

const (
	secretSession = `out {"type":"thread.started","thread_id":"t"}` + "\n"
	secretAnswer  = `out {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"hello"}}` + "\n"
	secretDone    = `out {"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}` + "\n"
)

// No text of ours holds a secret: whatever is run, in every format, however the
// agent fails. What the agent says itself is passed on as it is, so here it
// quotes secrets in its failures alone, and those are only shown by us.
func TestNoTextOfOursHoldsASecret(t *testing.T) {
	t.Parallel()
	const quoted = "SECRETS"
	plays := map[string]string{
		"succeeds":           secretSession + secretAnswer + secretDone,
		"noisy":              "err using " + quoted + "\n" + secretSession + secretAnswer + secretDone,
		"exits":              "err the keys are " + quoted + "\nexit 3\n",
		"fails":              secretSession + `out {"type":"turn.failed","error":{"message":"refused: ` + quoted + `"}}` + "\nexit 1\n",
		"refused":            secretSession + `out {"type":"error","message":"Reconnecting... 1/5 (401 Unauthorized: ` + quoted + `)"}` + "\nhang\n",
		"retries":            secretSession + `out {"type":"error","message":"Reconnecting... 1/5 (no network for ` + quoted + `)"}` + "\nexit 1\n",
		"no result":          secretSession + secretAnswer + "err " + quoted + "\n",
		"says and fails":     secretSession + `out {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"using ` + quoted + `"}}` + "\nexit 1\n",
		"hangs":              "err " + quoted + "\nhang\n",
		"cannot be executed": "",
	}
	run := []string{"run", "--agent", "codex", "--text", "x", "--env", "CALL_TOKEN=" + callSecret}
	mine := []string{"run", "--agent", "mine", "--text", "x", "--env", "CALL_TOKEN=" + callSecret}
	with := func(args []string, more ...string) []string { return append(append([]string{}, args...), more...) }
	for name, c := range map[string]struct {
		play string
		args []string
		exit int
	}{
		"text, said more":          {"succeeds", with(run, "-vv"), 0},
		"ndjson":                   {"succeeds", with(run, "--output-format", "ndjson"), 0},
		"events":                   {"succeeds", with(run, "--output-format", "events"), 0},
		"json":                     {"noisy", with(run, "--format", "json"), 0},
		"into a file":              {"noisy", with([]string{"-o", "answer"}, run...), 0},
		"dry run":                  {"succeeds", with(run, "--dry-run", "--", "--key", "sk-environ-key-1111"), 0},
		"dry run, json":            {"succeeds", with(mine, "--dry-run", "--format", "json", "--", "--key=sk-environ-key-1111"), 0},
		"failure":                  {"fails", with([]string{"-q"}, run...), 1},
		"exit":                     {"exits", with([]string{"-q"}, run...), 1},
		"exit, json":               {"exits", with(run, "--format", "json"), 1},
		"refused login":            {"refused", with([]string{"-q"}, run...), 1},
		"retry":                    {"retries", with([]string{"-q"}, run...), 1},
		"no result":                {"no result", with([]string{"-q"}, run...), 1},
		"what was not shown":       {"says and fails", with([]string{"-q"}, run...), 1},
		"timeout":                  {"hangs", with([]string{"-q"}, append(run, "--timeout", "4s")...), 1},
		"usage error":              {"succeeds", with(run, "--env", "OTHER_KEY", "--access", "all"), 2},
		"variable without a value": {"succeeds", with(run, "--env", "sk-environ-key-1111"), 2},
		"not installed":            {"succeeds", []string{"run", "--agent", "gemini", "--text", "x", "--env", "CALL_TOKEN=" + callSecret}, 1},
		"cannot be executed":       {"cannot be executed", with([]string{"-q"}, run...), 1},
		"described":                {"exits", with([]string{"-q"}, mine...), 1},
		"described, json":          {"exits", with(mine, "--format", "json", "-q"), 1},
		"detect, json":             {"succeeds", []string{"detect", "-v", "--format", "json"}, 0},
		"config, json":             {"succeeds", []string{"config", "show", "--format", "json"}, 0},
		"doctor":                   {"succeeds", []string{"doctor"}, 0}, // the described agent needs no version
		"instructions":             {"succeeds", []string{"instructions", "show"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play, ok := plays[c.play]
			if !ok {
				t.Fatalf("no agent %q", c.play)
			}
			secrets := secretsOf(c.args)
			play = strings.ReplaceAll(play, quoted, strings.Join(secrets, " and "))
			s := newSandbox(t, "codex", play)
			if err := link(s.path("bin"), "mine"); err != nil {
				t.Fatal(err)
			}
			if c.play == "cannot be executed" {
				replace(t, s.path("bin/codex"), "#!/no/such/"+callSecret+"\n", 0o755)
			}
			replace(t, s.path("bin/mine.play"), play, 0o644)
			replace(t, s.path("preferences.json"), `{"version":1,"values":{"bus-agent.runtimes.mine":{"name":"Mine","executables":["mine"],"install_url":"https://example.com/mine","args":[],"env":{"MINE_API_KEY":"`+describedSecret+`"}}}}`, 0o600)
			var stdout, stderr bytes.Buffer
			cmd := s.command(c.args...)
			for name, value := range environSecrets {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if code := exitCode(t, cmd.Run()); code != c.exit {
				t.Errorf("exit code %d, want %d: %s", code, c.exit, stderr.String())
			}
			texts := map[string]string{"standard output": stdout.String(), "standard error": stderr.String()}
			if text, err := os.ReadFile(s.path("work/answer")); err == nil {
				texts["the file"] = string(text)
			}
			for where, text := range texts {
				for _, secret := range secrets {
					if strings.Contains(text, secret) {
						t.Errorf("%s holds %s:\n%s", where, secret, text)
					}
				}
			}
			if quotes := strings.Contains(plays[c.play], quoted); c.exit == 1 && quotes && !strings.Contains(stderr.String(), "***") {
				t.Errorf("nothing was masked: %s", stderr.String())
			}
		})
	}
}

func replace(t *testing.T, name, text string, perm os.FileMode) {
	t.Helper()
	_ = os.Remove(name)
	if err := os.WriteFile(name, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
}
