// Package rest describes runtimes that are models behind HTTP interfaces. They
// share one program, bus-agent-rest, which asks an OpenAI-compatible endpoint and
// writes lines of JSON as any agent does. Importing this package registers
// nothing; the packages openai, perplexity and xai each register one runtime.
//
// # Executable
//
// bus-agent-rest, a separate module, so that bus-agent does not need its
// dependencies:
//
//	go install github.com/busdk/bus-agent/bus-agent-rest@latest
//
// Its flags, variables and lines: go doc github.com/busdk/bus-agent/bus-agent-rest.
// Request.Args go to it as they are.
//
// # Options
//
// Such a model has no tools: it cannot read files, run commands or change anything.
// So read and write, the default, have the same effect; the access is recorded in
// the first line of the output. full is refused: a caller that asks for it expects
// an agent that acts. For the same reason there are no added directories and no
// allowed commands.
//
// The model is passed on. Without one, the variable of the service decides,
// then the default model of the service. Runs cannot be resumed.
//
// The run's own timeout is the limit of time. Request.IdleTimeout bounds the silence of
// the server during a request; without it the default of bus-agent-rest applies. The
// program enforces it, because only the program sees the server's keepalives, and
// waiting before another attempt is not silence.
//
// # Project instructions
//
// They go before the prompt, at most 256 KiB. Nothing is written.
//
// # Home and login
//
// The token and the address come from variables, see each package. The program
// reads no file, so nothing that a repository holds has any effect.
//
// # Errors
//
// A run without a result has failed. An answer that was cut off, by a broken
// connection or a limit of tokens, is a failure; the part received is in the
// events. So is a refusal of the model, whose text is the answer of the failed run.
// Usage and cost are reported after failures too, if the server sent them.
package rest

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

const (
	executable = "bus-agent-rest"
	installURL = "https://pkg.go.dev/github.com/busdk/bus-agent/bus-agent-rest"
)

// A Service is an HTTP service that bus-agent-rest supports.
type Service struct {
	// ID is the runtime's ID and the value of --provider.
	ID string
	// Name is the name that users see.
	Name string
	// Provider is registry.Runtime.Provider.
	Provider string
	// TokenEnv is the variable of its token.
	TokenEnv string
}

// Runtime returns the description of a service's runtime.
func Runtime(s Service) registry.Runtime {
	return registry.Runtime{
		ID:          s.ID,
		Name:        s.Name,
		Executables: []string{executable},
		InstallURL:  installURL,
		Provider:    s.Provider,
		TokenEnv:    []string{s.TokenEnv},
		TokenOnly:   true,
		// It has no configuration to use or to leave out.
		UserConfig: registry.UserConfig{Modes: agent.UserConfigs()},
		Run: registry.Use{
			Options: registry.Options{
				Model:       true,
				Access:      []agent.Access{agent.AccessRead, agent.AccessWrite},
				IdleTimeout: true,
			},
			Prepare: registry.PrependInstructions,
			Command: s.command,
		},
		Decoder:       func() formatters.Decoder { return decoder{} },
		Recognize:     recognize(s.ID),
		ReportsResult: true,
		Instructions:  &registry.Instructions{MaxBytes: instructions.MaxBytes},
	}
}

// command builds the argument list. The runner's timeout replaces that of the program.
func (s Service) command(inv registry.Invocation) (agent.Command, error) {
	args := []string{"--provider=" + s.ID, "--access=" + string(inv.Access), "--timeout=0"}
	if inv.Model != "" {
		args = append(args, "--model="+inv.Model)
	}
	if inv.IdleTimeout > 0 {
		args = append(args, "--idle-timeout="+inv.IdleTimeout.String())
	}
	return agent.Command{Args: append(args, inv.Args...), Stdin: inv.Prompt}, nil
}
