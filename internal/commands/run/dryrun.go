package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/runner"
)

// dryRunReport is what a run would do, in JSON.
type dryRunReport struct {
	Runtime     string   `json:"runtime"`
	Model       string   `json:"model"`
	Source      string   `json:"source"`
	Workdir     string   `json:"workdir"`
	Path        string   `json:"path"`
	Args        []string `json:"args"`
	PromptBytes int      `json:"stdin_bytes"`
	TimeoutMS   int64    `json:"timeout_ms"`
	Environment []string `json:"environment"`
	Files       []string `json:"files"`
	// UserConfig lists the files of the user's configuration of the CLI.
	UserConfig []agent.ConfigFile `json:"user_config,omitempty"`
	Warnings   []string           `json:"warnings"`
	// Schema says how the agent gets the schema of its answer.
	Schema string `json:"schema,omitempty"`
	// Attachments are the files for the model.
	Attachments []agent.AttachmentInfo `json:"attachments,omitempty"`
	// Candidates are the runtimes that the run may try, this one among them.
	Candidates []fallback.Candidate `json:"candidates,omitempty"`
}

// dryRun prints what a run would start and write: names of variables, never
// their values, and secrets masked where an argument has them.
func dryRun(ctx context.Context, prog *cmdline.Program, r *fallback.Chain, req agent.Request, messages *startMessages) error {
	p, candidates, err := r.DryRun(ctx, req)
	messages.release()
	if err != nil {
		return err
	}
	environ := slices.Concat(prog.Env.Environ, req.Env, p.Start.Command.Env)
	args := make([]string, len(p.Start.Command.Args))
	for i, arg := range p.Start.Command.Args {
		args[i] = runner.Mask(environ, arg)
	}
	out := dryRunReport{
		Runtime:     p.Start.Runtime,
		Model:       p.Settings.Model.Value,
		Source:      p.Selection.Source,
		Workdir:     p.Start.Workdir,
		Path:        p.Start.Path,
		Args:        args,
		PromptBytes: len(p.Start.Command.Stdin),
		TimeoutMS:   p.Settings.Timeout.Value.Milliseconds(),
		Environment: append([]string{}, p.Env...),
		Files:       append([]string{}, p.Files...),
		UserConfig:  p.Start.UserConfig,
		Warnings:    append([]string{}, p.Warnings...),
		Attachments: agent.AttachmentInfos(req.Attachments),
		Candidates:  candidates,
	}
	if req.Schema != nil {
		out.Schema = "by an option of the CLI"
		if p.SchemaInPrompt {
			out.Schema = "in the prompt"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "runtime: %s (%s)\n", out.Runtime, out.Source)
	fmt.Fprintf(&b, "model: %s\n", out.Model)
	fmt.Fprintf(&b, "timeout: %s\n", cmdline.DurationText(p.Settings.Timeout.Value))
	fmt.Fprintf(&b, "workdir: %s\n", cmdline.ShellWord(out.Workdir))
	fmt.Fprintf(&b, "command: %s\n", cmdline.ShellLine(append([]string{out.Path}, out.Args...)))
	fmt.Fprintf(&b, "standard input: %d bytes\n", out.PromptBytes)
	if out.Schema != "" {
		fmt.Fprintf(&b, "schema: %s\n", out.Schema)
	}
	writeList(&b, "variables", out.Environment)
	writeList(&b, "files", out.Files)
	for _, file := range out.Attachments {
		fmt.Fprintf(&b, "attachment: %s\n", cmdline.Printable(file.String()))
	}
	for _, file := range out.UserConfig {
		fmt.Fprintf(&b, "your configuration: %s\n", cmdline.Printable(file.String()))
	}
	if len(candidates) > 0 {
		writeList(&b, "runtimes to try", candidateLines(candidates))
	}
	return prog.Out.Report(out, b.String())
}

// candidateLines returns a line for each runtime that a run would try or skip.
func candidateLines(list []fallback.Candidate) []string {
	lines := make([]string, len(list))
	for i, c := range list {
		lines[i] = cmp.Or(c.Runtime, "the first available")
		if c.Skipped != "" {
			lines[i] += ": " + cmdline.OneWord(c.Skipped) + "; skipped"
		}
	}
	return lines
}

func writeList(b *strings.Builder, name string, list []string) {
	if len(list) == 0 {
		fmt.Fprintf(b, "%s: none\n", name)
		return
	}
	fmt.Fprintf(b, "%s:\n", name)
	for _, item := range list {
		b.WriteString("  " + cmdline.Printable(item) + "\n")
	}
}
