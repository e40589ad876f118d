package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/busdk/bus-agent/internal/testneed"
)

// In each shell, completion by the script that the program prints. Shells differ in the
// order of what they list.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	for shell, test := range map[string]struct{ args, script, want string }{
		"bash": {"-u", `source ./completion
# try WORD...: the words as bash hands them over, broken at : and =.
try() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _bus_agent
    printf '%s:' "${@: -1}"
    ((!${#COMPREPLY[@]})) || printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | while read -r reply; do printf ' <%s>' "$reply"; done
    printf '\n'
}
try bus-agent det
try bus-agent run --agent co
try bus-agent run --agent codex :
try bus-agent run --agent codex : lo
try bus-agent run --agent = co
try bus-agent run --agent = codex : lo
try bus-agent run --access =
try bus-agent run --text 'two words' --acc
try bus-agent run --prompt a
try bus-agent run --workdir a
try bus-agent nothing ''
`, `det: <detect>
co: <codex> <codex-acp> <codex:local> <copilot>
:: <local>
lo: <local>
co: <codex> <codex-acp> <codex:local> <copilot>
lo: <local>
=: <full> <read> <write>
--acc: <--access>
a: <a file> <ab>
a: <ab>
:
`},
		"zsh": {"-f", "autoload -Uz compinit && compinit -u -d ./dump && source ./completion && echo ${_comps[bus-agent]}", "_bus_agent\n"},
		"fish": {"--no-config", `source ./completion
complete -C 'bus-agent run --agent co' | LC_ALL=C sort
complete -C 'bus-agent set model-verbosity l'
`, "codex\ncodex-acp\ncodex:local\ncopilot\nlow\n"},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			program := testneed.Program(t, shell)
			s := newSandbox(t, agentName, "")
			s.exits(0, "-o", "completion", "completion", shell)
			s.makeDir("work/ab")
			s.write(s.path("work/a file"), "")
			s.write(s.path("work/script"), test.script)
			cmd := exec.CommandContext(t.Context(), program, test.args, "script")
			cmd.Env = append(s.command().Env, "PATH="+s.path("bin")+":"+os.Getenv("PATH"))
			cmd.Dir = s.path("work")
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != test.want {
				t.Errorf("%v:\n%swant:\n%s", err, out, test.want)
			}
		})
	}
}
