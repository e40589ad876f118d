//go:build linux || darwin

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/busdk/bus-agent/verify"
	"github.com/busdk/bus-agent/verify/targets"
)

// most is how long a run by bus-agent may take, as a multiple of the CLI itself.
const most = 1.03

// clis are the CLIs whose runs are compared.
var clis = []struct {
	target func() verify.Target
	first  []string // its arguments before the model
	last   []string // and before the prompt
	sdk    string   // the module of its vendor, "" for none
	home   string   // the variable of its home, where a new one costs it time
}{
	{targets.Codex, []string{"exec"}, nil, "@openai/codex-sdk/dist/index.js", "CODEX_HOME"},
	{targets.Claude, nil, []string{"-p"}, "@anthropic-ai/claude-agent-sdk/sdk.mjs", ""},
	{targets.Gemini, []string{"--skip-trust"}, []string{"-p"}, "", ""},
}

// runsOfCLIs compares runs of real CLIs by bus-agent with the CLIs themselves and with
// the SDKs of their vendors, with a scripted model.
func (b *bench) runsOfCLIs() error {
	for _, c := range clis {
		t := c.target()
		cli := installed(b.clis, ".bin/"+t.Runtime)
		if cli == nil {
			b.table.add(row{work: "one prompt to " + t.Runtime, figure: "not measured: make agents"})
			continue
		}
		w, err := b.newWorld(t, filepath.Dir(cli[0]), filepath.Dir(cli[1]))
		if err != nil {
			return err
		}
		bare := slices.Concat(cli[:1], c.first, w.args, []string{"--model", t.Model}, c.last, []string{prompt})
		run := []string{b.binary, "run", "--agent", t.Runtime, "--model", t.Model, prompt}
		if w.args != nil {
			run = append(append(run, "--"), w.args...)
		}
		works := []work[time.Duration]{timed(w.command(spoken, bare...)), timed(w.command(spoken, run...))}
		others := []other{{t.Runtime + " itself", most}}
		sdk := installed(b.sdks, c.sdk)
		if c.sdk != "" && sdk != nil {
			script, err := filepath.Abs("internal/bench/testdata/sdk.mjs")
			if err != nil {
				return err
			}
			works = append(works, timed(w.command(spoken, slices.Concat(
				[]string{cli[1], script, t.Runtime, "file://" + sdk[0], cli[0], t.Model, prompt}, w.args)...)))
			others = append(others, other{"its SDK", 1})
		}
		if c.home != "" {
			works = append(works, timed(w.inNewHome(c.home, bare...)))
			others = append(others, other{t.Runtime + " itself in a new home", most})
		}
		err = b.compareRuns(t.Runtime, works, others)
		w.close()
		if err != nil {
			return err
		}
		if c.sdk != "" && sdk == nil {
			b.table.add(row{work: fmt.Sprintf("one prompt to %s by its SDK", t.Runtime), figure: "not measured: make sdks"})
		}
	}
	return nil
}

// inNewHome is command with an empty home of the CLI for each call, which the variable
// names.
func (w *world) inNewHome(variable string, command ...string) func() error {
	return func() error {
		home, err := os.MkdirTemp(w.root, "home-")
		if err != nil {
			return err
		}
		fresh := *w
		fresh.env = append(slices.Clip(w.env), variable+"="+home)
		return fresh.command(spoken, command...)()
	}
}

// other is what a run is compared with.
type other struct {
	name  string
	limit float64 // how many times as long the run may take
}

// compareRuns compares the second work, a run, with the others.
func (b *bench) compareRuns(runtime string, works []work[time.Duration], others []other) error {
	costs, err := inTurn(b.cliRounds, 1, works...)
	if err != nil {
		return err
	}
	run := costs[1]
	costs = slices.Delete(costs, 1, 2)
	for i, o := range others {
		b.addTimes(fmt.Sprintf("one prompt to %s by bus-agent run", runtime), o.name, costs[i], run, o.limit)
	}
	return nil
}
