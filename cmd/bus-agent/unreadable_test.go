//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/testuser"
)

const repository = "mkdir -p .git/hooks .git/objects .git/refs && echo ref: refs/heads/main >.git/HEAD && "

// Folders and files that the user may not read do not fail a run that does not need
// them, and are named where something is left out or refused for that reason.
func TestUnreadableFolders(t *testing.T) {
	t.Parallel()
	if !testuser.Ordinary(t, "PATH="+os.Getenv("PATH")) {
		return
	}
	for name, test := range map[string]struct {
		make string // commands, in the workdir
		play string // of the agent
		args []string
		code int
		says string // on standard error
	}{
		"a folder that the run does not need":    {make: "mkdir -p a/b && chmod 000 a/b"},
		"one that can be listed alone":           {make: "mkdir -p a/b && touch a/b/AGENTS.md && chmod 444 a/b"},
		"one that can be entered alone":          {make: "mkdir -p a/b && chmod 111 a/b", code: 2, says: "/a/b: the folder cannot be searched for git configuration"},
		"one with many below":                    {make: "mkdir -p a/1/2/3 a/b/c && chmod 000 a/1 a/b"},
		"an added one":                           {make: "mkdir ../added && mkdir ../added/in && chmod 000 ../added/in", args: []string{"--add-dir", "../added"}},
		"hooks that cannot be listed":            {make: repository + "chmod 111 .git/hooks", code: 2, says: ".git/hooks: the folder cannot be searched"},
		"configuration of git":                   {make: repository + "touch .git/config && chmod 000 .git/config", code: 2, says: ".git/config: permission denied"},
		"hooks":                                  {make: repository + "chmod 000 .git/hooks"},
		"skills":                                 {make: "mkdir -p .agents/skills/a && touch .agents/skills/a/SKILL.md && chmod 000 .agents/skills/a"},
		"a skill":                                {make: "mkdir -p .agents/skills/a && touch .agents/skills/a/SKILL.md && chmod 000 .agents/skills/a/SKILL.md"},
		"homes of other runs":                    {make: "mkdir -p .codex/bus/0123456789abcdef && chmod 000 .codex/bus/0123456789abcdef"},
		"records of other runs":                  {make: "mkdir -p ../home/.local/state/bus-agent/runs/p/task-20260101-000000-x/runs && chmod 000 ../home/.local/state/bus-agent/runs/p", args: []string{"--record"}},
		"records that are listed":                {make: "mkdir -p ../home/.local/state/bus-agent/runs/p/task-20260101-000000-x/runs && chmod 000 ../home/.local/state/bus-agent/runs/p", args: []string{"runs", "list"}, says: "runs/p"},
		"temporary files that are listed":        {make: "mkdir -p ../tmp/bus-agent-1 && chmod 000 ../tmp/bus-agent-1", args: []string{"doctor", "--sweep", "--owner", "1"}},
		"what its agent leaves":                  {play: "sh /bin/mkdir -p $CODEX_HOME/d/e && /bin/chmod 000 $CODEX_HOME/d/e $CODEX_HOME/d; : >$HOME/go\nwait $HOME/go\n"},
		"its home":                               {play: "sh /bin/mkdir -p $CODEX_HOME/d && /bin/chmod 000 $CODEX_HOME; : >$HOME/go\nwait $HOME/go\n"},
		"AGENTS.md":                              {make: "touch AGENTS.md && chmod 000 AGENTS.md", says: "AGENTS.md"},
		"the folder that is to have the homes":   {make: "mkdir -p .codex/bus && chmod 000 .codex/bus"},
		"a workdir that cannot be written":       {make: "chmod 555 ."},
		"a workdir that cannot be listed":        {make: "chmod 311 .", code: 2, says: "/work: permission denied"},
		"a workdir in which nothing can be read": {make: "mkdir a && chmod 000 a && chmod 511 ."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, agentName, test.play+answered)
			t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwX", s.dir).Run() })
			s.makeDir("tmp")
			sh := exec.Command("/bin/sh", "-c", test.make)
			sh.Dir = s.path("work")
			if out, err := sh.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			args := test.args
			if len(args) == 0 || strings.HasPrefix(args[0], "-") {
				args = append([]string{"run", "--text", "x"}, args...)
			}
			cmd := s.command(args...)
			cmd.Env = append(cmd.Env, "TMPDIR="+s.path("tmp"))
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if code := exitCode(t, err); code != test.code || !strings.Contains(string(out), test.says) {
				t.Errorf("exit code %d, want %d; says %q, want %q", code, test.code, out, test.says)
			}
			if homes, _ := filepath.Glob(s.path(ownHomes + "[0-9a-f]*")); test.make == "" && len(homes) > 0 {
				t.Errorf("left behind: %q", homes)
			}
		})
	}
}
