package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/structured"
)

// schemaOptions are the flags of run about what its answer has to follow.
type schemaOptions struct {
	schema   string
	compiled *structured.Schema // of the file
}

func (o *schemaOptions) flags() []urfave.Flag {
	return []urfave.Flag{
		cmdline.Option("schema", "let the answer be JSON that follows the JSON Schema in `FILE`, - for standard input", &o.schema).Of(cmdline.Files),
	}
}

// checkSchema checks the flags of o together, before standard input is read.
func (o *Options) checkSchema() error {
	for _, f := range []struct {
		name  string
		value string
	}{{"prompt", o.Prompt}, {"template", o.template}} {
		if o.schema == "-" && f.value == "-" {
			return agent.Usagef("--schema - and --%s - both read standard input; write one of them to a file", f.name)
		}
	}
	return nil
}

// readSchema reads the schema that the answer has to follow and adds it to req.
func readSchema(prog *cmdline.Program, ctx context.Context, o *schemaOptions, req *agent.Request) error {
	if o.schema == "" {
		return nil
	}
	text, err := prog.ReadInput(ctx, "--schema", o.schema)
	if err != nil {
		return err
	}
	if o.compiled, err = structured.Compile([]byte(text)); err != nil {
		return agent.Usagef("--schema %s: %w", cmdline.Quote(o.schema), err)
	}
	req.Schema = o.compiled.JSON()
	return nil
}

// withSchema returns next, or what stands around it where the answer has to follow
// a schema. The timeout in effect bounds both turns of such a run.
func withSchema(prog *cmdline.Program, ctx context.Context, o *schemaOptions, r *runner.Runner, next agentRunner, req agent.Request, warn func(string)) agentRunner {
	if o.compiled == nil {
		return next
	}
	checked := &structured.Enforcer{Next: next, Schema: o.compiled, Environ: prog.Env.Environ, Warn: warn}
	if s, err := r.Settings(ctx, "", req, ""); err == nil { // otherwise the run says what is wrong
		checked.Timeout = s.Timeout.Value
	}
	return checked
}

// structuredAnswer returns the JSON value that a run answered; nil when its answer
// does not have to be one.
func structuredAnswer(r agentRunner, result agent.Result, err error) json.RawMessage {
	if _, ok := r.(*structured.Enforcer); !ok || err != nil {
		return nil
	}
	return json.RawMessage(result.Text)
}

// printableJSON returns a JSON value with the characters escaped that would not be
// printed.
func printableJSON(text string) string {
	if formatters.SanitizeString(text) == text {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case formatters.SanitizeString(string(r)) == string(r):
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}

// schemaWay says how the agent of a plan is told of the schema; "" without one.
func schemaWay(p runner.DryRun, req agent.Request) string {
	switch {
	case req.Schema == nil:
		return ""
	case p.SchemaInPrompt:
		return "in the prompt"
	}
	return "by an option of the CLI"
}
