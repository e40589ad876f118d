// Package gitenv keeps the configuration of repositories from running programs. It
// finds the variables that do so and overrides each by the environment. It starts no
// process.
package gitenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// maxParameters bounds one variable of the environment; Linux takes 128 KiB.
const maxParameters = 100 << 10

// Parameters is the variable with which git overrides its configuration.
const Parameters = "GIT_CONFIG_PARAMETERS"

// A Query names the folders in which git may be called.
type Query struct {
	// Workdir is the folder in which it is called, absolute.
	Workdir string
	// Below are the folders that are searched for further repositories, absolute.
	Below []string
	// Environ is the environment of the caller, whose own configuration stays in
	// effect.
	Environ []string
	// Trusted says that the repositories may run programs. Then only files that block
	// git are searched for.
	Trusted bool
}

// A Result is the environment that keeps repositories from running programs.
type Result struct {
	// Env are the variables to set, "NAME=value". They continue those of
	// Query.Environ.
	Env []string
	// Left lists what is overridden: files, each with its variables.
	Left []string
	// LFS says that the filters of git-lfs are among what is overridden, and that the
	// user has not configured them.
	LFS bool
	// Commands are the lists of unfinished rebases with commands, which git runs when it
	// continues.
	Commands []string
	// Partial says that not all folders were searched, as they have too many entries.
	Partial bool
}

// Neutralize finds everything in the configuration of the repositories of q that
// makes git run a program, and returns the environment that overrides it: by the
// user's value, where the user's configuration or environment has one, or else by
// one that runs nothing. Repositories are those that git finds from the workdir and
// the folders below upward, those in the folders below, and their submodules and
// worktrees. Includes are followed under whatever condition. The folders are searched
// by the survey that ctx carries, see tree.SurveyOf. Where it has left out some,
// hooks and the monitor, which git runs by itself, are overridden in any case.
//
// It refuses FIFOs and devices, for which git would wait, with ErrBlocks: those anywhere in
// the folders of these repositories, and those that their configuration names or that git
// reads in each folder of a worktree.
//
// The error names the file and the variable that cannot be overridden, or what
// cannot be read or searched. It is context.Cause's when ctx is over.
func Neutralize(ctx context.Context, q Query) (Result, error) {
	home, _ := agent.LookupEnv(q.Environ, "HOME")
	f := &finder{ctx: ctx, home: home, trusted: q.Trusted, seen: make(map[string]bool)}
	for _, name := range []string{"GIT_DIR", "GIT_COMMON_DIR"} {
		if dir, ok := agent.LookupEnv(q.Environ, name); ok && dir != "" {
			if err := f.gitFile(join(q.Workdir, dir)); err != nil {
				return Result{}, err
			}
		}
	}
	for _, dir := range append([]string{q.Workdir}, q.Below...) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			err = f.up(real)
		}
		if err != nil {
			return Result{}, err
		}
	}
	complete, err := f.down(q.Below)
	if err != nil || q.Trusted {
		return Result{Partial: !complete}, err
	}
	return f.override(q.Environ, !complete)
}

// override returns what overrides all that was found, and in a partial search what
// may not have been.
func (f *finder) override(environ []string, partial bool) (Result, error) {
	o := overrides{user: userConfig(environ), done: make(map[string]bool)}
	result := Result{Partial: partial, Commands: f.execs}
	for _, v := range f.found {
		if err := context.Cause(f.ctx); err != nil {
			return Result{}, err
		}
		if o.text.Len() > maxParameters {
			return Result{}, o.tooLong(v.file, o.text.Len())
		}
		switch {
		case v.rule.env != "":
			if _, ok := agent.LookupEnv(environ, v.rule.env); !ok && !o.done[v.rule.env] {
				o.done[v.rule.env] = true
				result.Env = append(result.Env, v.rule.env+"=")
			}
		case strings.HasPrefix(v.key, "credential."):
			o.credentials()
		case o.isUsers(v.entry):
			continue
		case v.rule.sets != "":
			o.set(v.rule.sets, v.rule.neutral)
		default:
			o.set(v.key, v.rule.neutral)
			if section, sub, _ := split(v.key); section == "filter" {
				o.set("filter."+sub+".required", "false")
				_, users := o.users(v.key)
				result.LFS = result.LFS || sub == "lfs" && !users
			}
		}
		o.leave(v.file, v.key)
	}
	for _, e := range o.user {
		if namesRepository(e) {
			o.set(e.key, ruleFor(e).neutral)
			o.leave("the user's configuration", e.key)
		}
	}
	if len(f.hooks) > 0 && o.set("core.hookspath", os.DevNull) == os.DevNull {
		for _, name := range f.hooks {
			if err := context.Cause(f.ctx); err != nil {
				return Result{}, err
			}
			o.leave(filepath.Dir(name), filepath.Base(name))
		}
	}
	for _, r := range rules {
		if partial && r.unasked {
			o.set(r.key, r.neutral)
		}
	}
	if o.text.Len() > 0 {
		text := o.text.String()
		if before, ok := agent.LookupEnv(environ, Parameters); ok && before != "" {
			text = before + " " + text
		}
		if len(text) > maxParameters {
			return Result{}, o.tooLong(Parameters, len(text))
		}
		result.Env = append(result.Env, Parameters+"="+text)
	}
	for _, file := range o.files {
		result.Left = append(result.Left, file+": "+strings.Join(o.left[file], ", "))
	}
	return result, nil
}

// overrides collects variables for the environment.
type overrides struct {
	user  []entry
	text  strings.Builder
	done  map[string]bool
	files []string
	left  map[string][]string
	has   map[[2]string]bool // a file and what it has in left
}

// tooLong is the error for overrides of n bytes. It names the first file that has something
// to override, or else the given one.
func (o *overrides) tooLong(file string, n int) error {
	return refusal(append(o.files, file)[0], "at least %d bytes are needed to override the git configuration, the limit is %d", n, maxParameters)
}

// users returns the user's last value of key.
func (o *overrides) users(key string) (value string, ok bool) {
	for _, e := range slices.Backward(o.user) {
		if e.key == key {
			return e.value, !namesRepository(e)
		}
	}
	return "", false
}

// namesRepository reports whether e, a setting of the user, names hooks or a monitor by a
// path that is relative to the repository.
func namesRepository(e entry) bool {
	isPath := e.key == "core.hookspath" || e.key == "core.fsmonitor" && strings.Contains(e.value, "/")
	return isPath && e.value != "" && !filepath.IsAbs(e.value) && !strings.HasPrefix(e.value, "~")
}

func (o *overrides) isUsers(e entry) bool {
	value, ok := o.users(e.key)
	return ok && value == e.value
}

// set overrides key by the user's value, else by neutral, and returns which.
func (o *overrides) set(key, neutral string) string {
	value, ok := o.users(key)
	if !ok {
		value = neutral
	}
	if !o.done[key] {
		o.done[key] = true
		o.add(key, value)
	}
	return value
}

// credentials clears the list of helpers and adds the user's again.
func (o *overrides) credentials() {
	if o.done["credential"] {
		return
	}
	o.done["credential"] = true
	o.add("credential.helper", "")
	for _, e := range o.user {
		if strings.HasPrefix(e.key, "credential.") && strings.HasSuffix(e.key, ".helper") {
			o.add(e.key, e.value)
		}
	}
}

func (o *overrides) add(key, value string) {
	if o.text.Len() > 0 {
		o.text.WriteString(" ")
	}
	if strings.Contains(key, "=") { // known since git 2.31
		o.text.WriteString(quote(key) + "=" + quote(value))
		return
	}
	o.text.WriteString(quote(key + "=" + value))
}

func (o *overrides) leave(file, what string) {
	if o.left == nil {
		o.left, o.has = make(map[string][]string), make(map[[2]string]bool)
	}
	if o.left[file] == nil {
		o.files = append(o.files, file)
	}
	if pair := [2]string{file, what}; !o.has[pair] {
		o.has[pair] = true
		o.left[file] = append(o.left[file], what)
	}
}

// String returns what is left out as one line of bounded length, "" for nothing.
func (r Result) String() string {
	const most = 5
	switch n := len(r.Left); {
	case n == 0:
		return ""
	case n > most:
		return fmt.Sprintf("%s; and %d more files", strings.Join(r.Left[:most], "; "), n-most)
	}
	return strings.Join(r.Left, "; ")
}
