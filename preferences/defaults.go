package preferences

import (
	"context"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-preferences/pkg/preferences"
)

// A RunConfig holds the defaults of the run settings, without those for single models.
// An empty effort or verbosity leaves the choice to the runtime.
type RunConfig struct {
	Model           string
	ReasoningEffort agent.ReasoningEffort
	Verbosity       agent.Verbosity
	OutputFormat    agent.OutputFormat
	Timeout         time.Duration
	UserConfig      agent.UserConfig
}

// GetDefaultRunConfig returns the stored defaults of the run settings. One that is not
// stored is the built-in default: model "auto", output format "text" and a timeout of
// 60 minutes. A stored value that is not allowed is an agent.ErrUsage error that names
// its key.
func GetDefaultRunConfig(ctx context.Context) (RunConfig, error) {
	c := RunConfig{Model: runner.DefaultModel, OutputFormat: agent.OutputText, Timeout: runner.DefaultTimeout}
	for _, field := range []struct {
		key   string
		parse func(string) error
	}{
		{runner.KeyModel, into(&c.Model, agent.ParseModel)},
		{runner.KeyReasoningEffort, into(&c.ReasoningEffort, agent.ParseEffort)},
		{runner.KeyVerbosity, into(&c.Verbosity, agent.ParseVerbosity)},
		{runner.KeyOutputFormat, into(&c.OutputFormat, agent.ParseOutputFormat)},
		{runner.KeyUserConfig, into(&c.UserConfig, agent.ParseUserConfig)},
		{runner.KeyTimeout, into(&c.Timeout, runner.ParseTimeout)},
	} {
		if err := read(ctx, field.key, field.parse); err != nil {
			return RunConfig{}, err
		}
	}
	return c, nil
}

// GetDefaultRuntime returns the stored default runtime, for example "codex:local", or
// "". A stored value that cannot be a runtime is an agent.ErrUsage error.
func GetDefaultRuntime(ctx context.Context) (token string, err error) {
	err = read(ctx, runner.KeyRuntime, into(&token, parseToken))
	return token, err
}

// SetDefaultRuntime stores the default runtime: an ID or "ID:variant". The caller
// checks that the runtime exists.
func SetDefaultRuntime(ctx context.Context, token string) error {
	return write(ctx, runner.KeyRuntime, token, parseToken)
}

// SetDefaultModel stores the default model; "auto" lets the runtime choose.
func SetDefaultModel(ctx context.Context, model string) error {
	return write(ctx, runner.KeyModel, model, agent.ParseModel)
}

// SetDefaultReasoningEffort stores the default reasoning effort of all models.
func SetDefaultReasoningEffort(ctx context.Context, effort agent.ReasoningEffort) error {
	return write(ctx, runner.KeyReasoningEffort, effort, agent.ParseEffort)
}

// SetDefaultVerbosity stores the default verbosity of all models.
func SetDefaultVerbosity(ctx context.Context, verbosity agent.Verbosity) error {
	return write(ctx, runner.KeyVerbosity, verbosity, agent.ParseVerbosity)
}

// SetDefaultReasoningEffortForModel stores the default reasoning effort of one
// model. It wins over that of all models.
func SetDefaultReasoningEffortForModel(ctx context.Context, model string, effort agent.ReasoningEffort) error {
	return writeForModel(ctx, runner.KeyReasoningEffortForModel, model, effort, agent.ParseEffort)
}

// SetDefaultVerbosityForModel stores the default verbosity of one model. It
// wins over that of all models.
func SetDefaultVerbosityForModel(ctx context.Context, model string, verbosity agent.Verbosity) error {
	return writeForModel(ctx, runner.KeyVerbosityForModel, model, verbosity, agent.ParseVerbosity)
}

// SetDefaultOutputFormat stores the default output format of programs.
func SetDefaultOutputFormat(ctx context.Context, format agent.OutputFormat) error {
	return write(ctx, runner.KeyOutputFormat, format, agent.ParseOutputFormat)
}

// SetDefaultUserConfig stores whether agents use the user's configuration of their CLIs.
func SetDefaultUserConfig(ctx context.Context, mode agent.UserConfig) error {
	return write(ctx, runner.KeyUserConfig, mode, agent.ParseUserConfig)
}

// SetDefaultUserConfigForRuntime stores that of the runtime with one ID. It wins over
// that of all runtimes.
func SetDefaultUserConfigForRuntime(ctx context.Context, id string, mode agent.UserConfig) error {
	if !isID(id) {
		return agent.Usagef("runtime %q: the name must match [a-z][a-z0-9-]*", id)
	}
	return write(ctx, runner.KeyForModel(runner.KeyUserConfigForRuntime, id), mode, agent.ParseUserConfig)
}

// SetDefaultTimeout stores the default time limit of a run, which is positive.
func SetDefaultTimeout(ctx context.Context, timeout time.Duration) error {
	return write(ctx, runner.KeyTimeout, formatTimeout(timeout), runner.ParseTimeout)
}

// read parses the string stored under key, if there is one.
func read(ctx context.Context, key string, parse func(string) error) error {
	if err := checkLocation(); err != nil {
		return err
	}
	raw, ok, err := preferences.Get(ctx, key)
	if err != nil || !ok {
		return err
	}
	if len(raw) == 0 || raw[0] != '"' {
		return agent.Usagef("preference %s is not a string; set it again or unset it", key)
	}
	text, _, err := preferences.GetString(ctx, key)
	if err != nil {
		return err
	}
	if err := parse(text); err != nil {
		return agent.Usagef("preference %s: %w; set it again or unset it", key, err)
	}
	return nil
}

// into returns a function that parses a text into *v.
func into[T any](v *T, parse func(string) (T, error)) func(string) error {
	return func(s string) (err error) {
		*v, err = parse(s)
		return err
	}
}

// write stores value, which parse must accept.
func write[T ~string, P any](ctx context.Context, key string, value T, parse func(string) (P, error)) error {
	if _, err := parse(string(value)); err != nil {
		return err
	}
	if err := checkLocation(); err != nil {
		return err
	}
	return preferences.SetString(ctx, key, string(value))
}

func writeForModel[T ~string, P any](ctx context.Context, prefix, model string, value T, parse func(string) (P, error)) error {
	if _, err := agent.ParseModel(model); err != nil {
		return err
	}
	return write(ctx, runner.KeyForModel(prefix, model), value, parse)
}
