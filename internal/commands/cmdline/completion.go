package cmdline

import (
	"context"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
)

// completionScripts are our own because those of urfave/cli for bash and zsh are files of
// its repository, not part of the library, and its script for fish lists only the names
// of commands and flags. None of them completes values or arguments.
var completionScripts = map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}

func completionCommand(prog *Program) *urfave.Command {
	return &urfave.Command{
		Name:      "completion",
		Usage:     "print a shell completion script",
		ArgsUsage: "bash|zsh|fish",
		UsageText: UsageText(`# bash: in ~/.bashrc
source <(bus-agent completion bash)
# zsh: in ~/.zshrc, after compinit
source <(bus-agent completion zsh)
# fish: once
bus-agent completion fish > ~/.config/fish/completions/bus-agent.fish`,
			"the script was printed"),
		BashComplete: CompletesFirst(func() []string { return []string{"bash", "zsh", "fish"} }),
		Action: prog.Action(0, func(_ context.Context, call Call) error {
			script, ok := completionScripts[call.Args[0]]
			if !ok {
				return agent.Usagef("shell %q is not one of bash, zsh, fish", call.Args[0])
			}
			return prog.Out.Print(script)
		}),
	}
}

// bashCompletion works with bash 3.2 and without bash-completion. Bash splits words at
// ":" and "="; the script joins them again, and removes from the candidates what comes
// before the last split.
const bashCompletion = `# bash completion for bus-agent
_bus_agent() {
    local i word joined=0 cur line cut
    local -a words=()
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((${#words[@]} > 0)) && [[ $word == [:=] || $joined == 1 ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        joined=0
        [[ $word == [:=] ]] && joined=1
    done
    ((${#words[@]} > 0)) || words=("")
    cur=${words[${#words[@]}-1]}
    cut=${cur%"${COMP_WORDS[COMP_CWORD]}"}
    [[ ${COMP_WORDS[COMP_CWORD]} == [:=] ]] && cut=$cur
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :file) compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${cur#"$cut"}") ;;
        :dir) compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "${cur#"$cut"}") ;;
        *) line=${line%%$'\t'*}
            COMPREPLY+=("${line#"$cut"}") ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
}
complete -F _bus_agent bus-agent
`

const zshCompletion = `#compdef bus-agent
_bus_agent() {
    local line
    local -a plain described
    while IFS= read -r line; do
        case $line in
        :file) _files; return ;;
        :dir) _files -/; return ;;
        *$'\t'*) described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        *) plain+=("$line") ;;
        esac
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( ${#described} )) && _describe -t values bus-agent described
    (( ${#plain} )) && compadd -- "${plain[@]}"
}
if [[ ${funcstack[1]} == _bus_agent ]]; then
    _bus_agent "$@"
else
    compdef _bus_agent bus-agent
fi
`

const fishCompletion = `# fish completion for bus-agent
function __bus_agent_complete
    set -l tokens (commandline -opc) (commandline -ct)
    set -l current $tokens[-1]
    for line in ($tokens[1] __complete $tokens[2..-1] 2>/dev/null)
        switch $line
            case :file
                __fish_complete_path $current
            case :dir
                __fish_complete_directories $current
            case '*'
                echo $line
        end
    end
end
complete -c bus-agent -f -a '(__bus_agent_complete)'
`
