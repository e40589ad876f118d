//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
	"github.com/busdk/bus-agent/verify/targets"
)

// patience is how long one run of a real CLI may take.
const patience = 2 * time.Minute

// spoken is what the scripted model answers to every prompt.
const spoken = "It is done."

// A world is where a real CLI runs: an empty home, a folder for temporary files, a
// repository and a scripted model.
type world struct {
	verify.Target
	root, work string
	env        []string
	model      *modeltest.Server
	args       []string // of the CLI, so that it uses the model
}

// newWorld makes a world for a CLI. The programs are found in the folders of path.
func (b *bench) newWorld(t verify.Target, path ...string) (*world, error) {
	root, err := os.MkdirTemp(b.dir, t.Runtime+"-")
	if err != nil {
		return nil, err
	}
	model, err := modeltest.Start(modeltest.Always(modeltest.Reply{modeltest.Text{spoken}}), t.Model)
	if err != nil {
		return nil, err
	}
	w := &world{Target: t, root: root, work: filepath.Join(root, "work"), model: model}
	files := map[string]string{ // the least that is a repository
		"work/.git/HEAD":        "ref: refs/heads/main\n",
		"work/.git/config":      "[core]\n\trepositoryformatversion = 0\n",
		"work/.git/objects/.in": "",
		"work/.git/refs/.in":    "",
		"tmp/.in":               "",
		"home/.in":              "",
	}
	if t.Home != nil {
		for name, text := range t.Home(model) {
			files["home/"+name] = text
		}
	}
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			w.close()
			return nil, err
		}
	}
	path = append(path, "/usr/bin", "/bin")
	w.env = append([]string{
		"PATH=" + strings.Join(path, string(filepath.ListSeparator)), "HOME=" + filepath.Join(root, "home"),
		"TMPDIR=" + filepath.Join(root, "tmp"), "LC_ALL=C.UTF-8",
		"ACPX_GEMINI_ACP_STARTUP_TIMEOUT_MS=" + strconv.FormatInt(patience.Milliseconds(), 10),
	}, t.Env(model)...)
	if t.Args != nil {
		w.args = t.Args(model)
	}
	return w, nil
}

func (w *world) close() {
	w.model.Close()
	_ = os.RemoveAll(w.root) // or with the folder of the bench
}

// command returns what runs a program in the world, whose output has to hold the answer.
func (w *world) command(want string, command ...string) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c := exec.CommandContext(ctx, command[0], command[1:]...)
		c.Dir, c.Env, c.WaitDelay = w.work, w.env, time.Second
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.Output()
		if err == nil && !bytes.Contains(out, []byte(want)) {
			err = fmt.Errorf("it does not say %q", want)
		}
		if err != nil {
			return fmt.Errorf("%s: %w\n%s\n%s", strings.Join(command, " "), err, out, stderr.Bytes())
		}
		return nil
	}
}

// installed returns the paths of files that npm has installed below folder, and that of
// node; nil if one is missing.
func installed(folder string, files ...string) []string {
	for i, file := range files {
		path, err := filepath.Abs(filepath.Join(folder, "node_modules", file))
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return nil
		}
		files[i] = path
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil
	}
	return append(files, node)
}

// clients compares bus-agent with acpx, and a client that goes through bus-agent acp with
// one that does not, with the Gemini CLI and a scripted model.
func (b *bench) clients() error {
	gemini, acpx := installed(b.clis, ".bin/gemini"), installed(b.acpClients, "acpx/dist/cli.js")
	if gemini == nil || acpx == nil {
		b.table.add(row{work: "gemini by acpx and by bus-agent", figure: "not measured: make agents acp-clients"})
		return nil
	}
	w, err := b.newWorld(targets.Gemini(), filepath.Dir(gemini[0]), filepath.Dir(gemini[1]))
	if err != nil {
		return err
	}
	defer w.close()
	acpxOf := func(agent string) []string {
		return []string{acpx[1], acpx[0], "--approve-all", "--cwd", w.work, "--agent", agent}
	}
	direct := gemini[0] + " --acp --model " + w.Model
	through := b.binary + " acp --agent gemini --model " + w.Model
	if err := b.onePrompt(w, acpxOf(direct), acpxOf(through)); err != nil {
		return err
	}
	if err := b.secondPrompt(w, acpxOf(direct)); err != nil {
		return err
	}
	return b.turnsOf(w, direct, through)
}

// onePrompt compares single prompts.
func (b *bench) onePrompt(w *world, acpx, acpxThrough []string) error {
	costs, err := inTurn(b.cliRounds, 1,
		timed(w.command(spoken, append(slices.Clone(acpx), "exec", prompt)...)),
		timed(w.command(spoken, b.binary, "run", "--agent", "gemini", "--model", w.Model, prompt)),
		timed(w.command(spoken, append(slices.Clone(acpxThrough), "exec", prompt)...)),
	)
	if err != nil {
		return err
	}
	b.addTimes("one prompt to gemini by bus-agent run", "acpx exec", costs[0], costs[1], 1)
	b.addTimes("one prompt to gemini by acpx exec and bus-agent acp", "acpx exec", costs[0], costs[2], 0)
	return nil
}

// secondPrompt compares prompts to sessions whose agent is running.
func (b *bench) secondPrompt(w *world, acpx []string) error {
	const name = "bench"
	setUp := [][]string{
		append(slices.Clone(acpx), "sessions", "new"),
		append(slices.Clone(acpx), "prompt", prompt),
		{b.binary, "session", "start", "--agent", "gemini", "--model", w.Model, "--name", name},
		{b.binary, "session", "send", name, prompt},
	}
	defer func() { // both sessions outlive their commands
		_ = w.command("", append(slices.Clone(acpx), "sessions", "close")...)()
		_ = w.command("", b.binary, "session", "stop", name)()
	}()
	for _, command := range setUp {
		if err := w.command("", command...)(); err != nil {
			return err
		}
	}
	costs, err := inTurn(b.cliRounds, 1,
		timed(w.command(spoken, append(slices.Clone(acpx), "prompt", prompt)...)),
		timed(w.command(spoken, b.binary, "session", "send", name, prompt)),
	)
	if err != nil {
		return err
	}
	b.addTimes("second prompt to gemini by bus-agent session send", "acpx prompt", costs[0], costs[1], 1)
	return nil
}

// turnsOf compares the turns of one client, directly and through bus-agent acp. Both
// agents run all the time.
func (b *bench) turnsOf(w *world, direct, through string) error {
	var turns []func() error
	var wires []*wire
	defer func() {
		for _, c := range wires {
			_ = c.close() // it has answered
		}
	}()
	for _, command := range []string{direct, through} {
		c, err := dial(w.work, w.env, strings.Fields(command)...)
		if err != nil {
			return err
		}
		wires = append(wires, c)
		turn, err := c.openACP()
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		turns = append(turns, turn)
	}
	rounds := b.starts / 2
	costs, err := inTurn(rounds, warmUpStarts, timed(turns[0]), timed(turns[1]))
	if err != nil {
		return err
	}
	b.addMore(fmt.Sprintf("a turn of gemini through bus-agent acp, %d times", rounds), "gemini --acp", costs[0], costs[1], maxTurn)
	b.addMemory("bus-agent acp", wires[1])
	return nil
}

// addTimes adds a row for the ratio of two times, which should be at most most; zero
// stands for any.
func (b *bench) addTimes(work, other string, limits, figures []time.Duration, most float64) {
	limit, got := median(limits, itself), median(figures, itself)
	ratio := float64(got) / float64(limit)
	r := row{
		work: work, figure: fmt.Sprintf("%.3f s (min %.3f)", got.Seconds(), slices.Min(figures).Seconds()),
		limit: fmt.Sprintf("%s %.3f s (min %.3f)", other, limit.Seconds(), slices.Min(limits).Seconds()), ratio: times(ratio),
	}
	if most > 0 {
		r.target, r.met = fmt.Sprintf("≤ %.2f ×", most), ratio <= most
	}
	b.table.add(r)
}
