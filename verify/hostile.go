package verify

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/unix"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
)

// The folders of a planted trial: those of the programs and of the files that they create
// are next to the workdir, and pathFolder is in it.
const (
	plantsFolder = "plants"
	firedFolder  = "fired"
	pathFolder   = "bin"
)

// The planted programs that git and a command of the model run.
const (
	gitPrefix = "git-"
	pathCat   = "path-cat"
)

// gitConfig makes git run programs: %[1]s is their folder, which is quoted for the shell that
// git starts where a command is expected.
const gitConfig = `[core]
	repositoryformatversion = 0
	fsmonitor = '%[1]s/git-fsmonitor'
	hooksPath = %[1]s/hooks
[filter "planted"]
	clean = '%[1]s/git-clean'
[diff]
	external = '%[1]s/git-diff'
`

// gitCommands make git run them.
var gitCommands = []string{"add fact.txt", "status", "diff --cached"}

// plant puts files into the repository that make git, the CLI and whatever uses PATH run
// programs. Each program creates a file with its name. It returns the names.
func (t *trial) plant() ([]string, error) {
	top := filepath.Dir(t.work)
	plants := filepath.Join(top, plantsFolder)
	scripts := map[string]string{
		plantsFolder + "/git-fsmonitor":           t.script("git-fsmonitor", "exit 0"),
		plantsFolder + "/git-clean":               t.script("git-clean", "exec /bin/cat"),
		plantsFolder + "/git-diff":                t.script("git-diff", "exit 0"),
		plantsFolder + "/hooks/post-index-change": t.script("git-hook", "exit 0"),
		"work/" + pathFolder + "/cat":             t.script(pathCat, `exec /bin/cat "$@"`),
	}
	names := []string{"git-fsmonitor", "git-clean", "git-diff", "git-hook", pathCat}
	files := map[string]string{
		"work/.git/config":          fmt.Sprintf(gitConfig, plants),
		"work/.git/info/attributes": "* filter=planted\n",
		"work/fact.txt":             fact + "\n",
	}
	if t.target.Plants != nil {
		planted := t.target.Plants(func(name string) string {
			names = append(names, name)
			scripts[plantsFolder+"/"+name] = t.script(name, "exit 0")
			return filepath.Join(plants, name)
		})
		for name, text := range planted {
			files["work/"+name] = text
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(top, firedFolder), 0o700), writeFiles(top, files), writeFiles(top, scripts)); err != nil {
		return nil, err
	}
	for name := range scripts {
		if err := os.Chmod(filepath.Join(top, filepath.FromSlash(name)), 0o700); err != nil {
			return nil, err
		}
	}
	t.path = filepath.Join(t.work, pathFolder)
	return names, nil
}

// script returns a program that records under a name that it runs.
func (t *trial) script(name, end string) string {
	return fmt.Sprintf("#!/bin/sh\n: > '%s'\n%s\n", filepath.Join(filepath.Dir(t.work), firedFolder, name), end)
}

// fired returns the names of the planted programs that have run.
func (t *trial) fired() (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(t.work), firedFolder))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// noneFired returns an error that names the planted programs that have run.
func (t *trial) noneFired() error {
	names, err := t.fired()
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("the repository ran %s", strings.Join(names, ", "))
	}
	return err
}

// callsGit returns a script whose model runs a command that uses git and PATH, if it can,
// and that shows PATH.
func (t *trial) callsGit() modeltest.Script {
	command := readsFact + "; echo $PATH"
	for _, arguments := range gitCommands {
		command += "; git " + arguments
	}
	return func(r *modeltest.Request) modeltest.Reply {
		if t.target.Command != nil && len(r.ToolResults()) == 0 {
			return modeltest.Reply{t.target.Command(command)}
		}
		return says("done")
	}
}

// runsNothing also plants an executable of the CLI itself, which may refuse the run.
func runsNothing(t *trial) error {
	if err := t.arrange(t.callsGit(), atRoot); err != nil {
		return err
	}
	if _, err := t.plant(); err != nil {
		return err
	}
	_, err := t.ask(agent.Request{Prompt: "hello", Access: t.most()}, "done")
	if fired := t.noneFired(); fired != nil {
		return fired
	}
	if err != nil {
		return err
	}
	for _, name := range t.runtime.Executables {
		path := filepath.Join(t.path, name)
		if err := os.WriteFile(path, []byte(t.script("path-"+name, "exit 1")), 0o700); err != nil {
			return err
		}
	}
	t.run(t.ctx, agent.Request{Prompt: "hello"})
	return t.noneFired()
}

// plantsFire shows that runsNothing can fail: with trust, the CLI runs the programs that
// its files name and those in PATH, and git alone runs the others.
func plantsFire(t *trial) error {
	if err := t.arrange(t.callsGit(), atRoot); err != nil {
		return err
	}
	names, err := t.plant()
	if err != nil {
		return err
	}
	if _, err := t.ask(agent.Request{Prompt: "hello", Access: t.most(), TrustWorkspace: true}, "done"); err != nil {
		return err
	}
	if err := t.runGit(); err != nil {
		return err
	}
	fired, err := t.fired()
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(fired, name) || !t.canFire(name)
	})
	if len(missing) > 0 {
		return fmt.Errorf("also with trust, the repository does not run %s", strings.Join(missing, ", "))
	}
	return nil
}

// git returns the executable of git, "" if none is installed.
func (t *trial) git() string {
	path, _ := agent.LookupEnv(t.environ, "PATH")
	name, err := process.LookPath("git", path)
	if err != nil {
		return ""
	}
	return name
}

// runGit runs git in the workdir, with its configuration, if it is installed.
func (t *trial) runGit() error {
	if t.git() == "" {
		return nil
	}
	for _, arguments := range gitCommands {
		_, err := process.Run(t.ctx, process.Spec{
			Path: t.git(), Args: strings.Fields(arguments), Dir: t.work, Env: append(slices.Clone(t.environ), "HOME="+t.home),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// canFire reports whether a planted program can run: git is installed, and the command of
// the model has the folder in PATH, which some CLIs set themselves.
func (t *trial) canFire(name string) bool {
	switch {
	case strings.HasPrefix(name, gitPrefix):
		return t.git() != ""
	case name == pathCat:
		list := t.model.ModelRequests()
		return t.target.Command != nil && strings.Contains(toolResults(list), t.path)
	}
	return true
}

// contextFiles returns the names of all context files that the CLI can read.
func (t *trial) contextFiles() []string {
	return slices.Concat([]string{"AGENTS.md"}, t.target.Context, t.target.Replaces)
}

// secret is what must not arrive.
const secret = "canary-4f9d2c7a1b"

func linkedSecret(t *trial) error {
	if err := t.start(modeltest.Always(says("ok")), nil); err != nil {
		return err
	}
	if err := writeFiles(filepath.Dir(t.work), map[string]string{"secret": secret + "\n"}); err != nil {
		return err
	}
	outside := filepath.Join(filepath.Dir(t.work), "secret")
	if err := t.runAmongPlants(func(path string) error { return os.Symlink(outside, path) }); err != nil {
		return err
	}
	for _, r := range t.model.Requests() {
		if strings.Contains(string(r.Body), secret) {
			return errors.New("the model got the file outside the repository")
		}
	}
	return nil
}

// fifoLimit bounds a run that does not wait for a FIFO.
const fifoLimit = time.Minute

func contextFIFO(t *trial) error {
	if err := t.start(modeltest.Always(says("ok")), nil); err != nil {
		return err
	}
	return t.runAmongPlants(func(path string) error { return unix.Mkfifo(path, 0o600) })
}

// runAmongPlants plants a hostile file at every place that any runtime is known to read, and runs
// the CLI. A run that is refused because of one is repeated without it: the CLI has to get along
// with the others.
func (t *trial) runAmongPlants(plant func(path string) error) error {
	var places []string
	for _, name := range t.places() {
		path := filepath.Join(t.work, filepath.FromSlash(name))
		if _, err := os.Lstat(path); err == nil {
			continue // a folder of others
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), plant(path)); err != nil {
			return err
		}
		places = append(places, name)
	}
	for {
		o := t.run(t.ctx, agent.Request{Prompt: "hello", Timeout: fifoLimit})
		if o.err == nil {
			return nil
		}
		named := slices.IndexFunc(places, func(name string) bool { return strings.Contains(o.err.Error(), filepath.FromSlash(name)) })
		if !errors.Is(o.err, agent.ErrUsage) || named < 0 {
			return fmt.Errorf("with files at %s, the run ended with %s", strings.Join(places, ", "), describe(o.err))
		}
		if err := os.Remove(filepath.Join(t.work, filepath.FromSlash(places[named]))); err != nil {
			return err
		}
		places = slices.Delete(places, named, named+1)
	}
}

// places returns the names of the files that any runtime is known to read, the longest first.
func (t *trial) places() []string {
	names := t.contextFiles()
	for _, rt := range cmp.Or(t.options.Registry, registry.Default()).All() {
		if rt.Reads == nil {
			continue
		}
		for _, read := range rt.Reads(registry.Invocation{}) {
			names = append(names, strings.NewReplacer("**", "any", "*", "any", "[0-9a-f]", "0").Replace(read.Name))
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	return slices.Compact(names)
}
