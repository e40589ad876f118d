package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
)

// A Home is the folder in which a CLI keeps the settings, logins and sessions of a
// user. The zero Home means that the folder is unknown.
type Home struct {
	// Env names the variable that moves the folder; empty if there is none.
	Env string

	// Folder is the folder below HOME that is used if Env is not set,
	// slash-separated; "." is HOME itself.
	Folder string

	// Logins are the files below the folder that can hold a login,
	// slash-separated.
	Logins []string

	// FullAccess reports that the CLI takes a folder of the caller's choice with
	// agent.AccessFull alone: its settings would decide what the agent may do.
	FullAccess bool
}

// dir returns the folder in the environment that getenv reads: the value of Env
// as it is, or Folder below HOME. It is empty where neither variable is set.
func (h Home) dir(getenv func(string) string) string {
	if h.Env != "" {
		if dir := getenv(h.Env); dir != "" {
			return dir
		}
	}
	if home := getenv("HOME"); home != "" && h.Folder != "" {
		return filepath.Join(home, filepath.FromSlash(h.Folder))
	}
	return ""
}

// LoginFiles returns the paths of the logins in the environment that getenv reads.
func (h Home) LoginFiles(getenv func(string) string) (files []string) {
	dir := h.dir(getenv)
	if dir == "" {
		return nil
	}
	for _, name := range h.Logins {
		files = append(files, filepath.Join(dir, filepath.FromSlash(name)))
	}
	return files
}

// UserHome returns the absolute path of the folder of h in the environment of inv; ""
// if neither of its variables is set.
func (inv *Invocation) UserHome(h Home) string { return inv.abs(h.dir(inv.Getenv)) }

// abs returns a path relative to the workdir as an absolute one.
func (inv *Invocation) abs(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(inv.Workdir, name)
}

// Untrusted reports whether the repository, or one around it, controls the target of the
// absolute path name, see [instructions.Touches], and the workspace is not trusted. A CLI
// must not run such a file or log in with it. If HOME is the root of the repository, its
// files belong to the user; this does not hold for a home named by another variable.
func (inv *Invocation) Untrusted(name string) bool {
	if inv.TrustWorkspace {
		return false
	}
	touches := func(dir string) bool { return instructions.Touches(dir, name) }
	return slices.ContainsFunc(inv.Repositories, touches) || touches(inv.Root) && !inv.rootIsHome()
}

// rootIsHome reports whether HOME is the root of the repository, by a path that does
// not lead through the repository.
func (inv *Invocation) rootIsHome() bool {
	home := inv.Getenv("HOME")
	return filepath.IsAbs(home) && sameFile(home, inv.Root) && !instructions.Touches(inv.Root, filepath.Dir(home))
}

// IsHome reports whether dir is HOME or the folder of h, and its files are the user's:
// it is not [Invocation.Untrusted].
func (inv *Invocation) IsHome(h Home, dir string) bool {
	for _, home := range []string{inv.abs(inv.Getenv("HOME")), inv.UserHome(h)} {
		if home != "" && sameFile(home, dir) && !inv.Untrusted(home) {
			return true
		}
	}
	return false
}

// RefuseHome returns an error of kind agent.ErrUsage if the user's home is
// [Invocation.Untrusted]. It is for a CLI that cannot use another home.
func (inv *Invocation) RefuseHome(h Home) error {
	dir := inv.UserHome(h)
	if _, err := os.Lstat(dir); dir == "" || err != nil || !inv.Untrusted(dir) {
		return nil
	}
	name := h.Env
	if name == "" || inv.Getenv(name) == "" {
		name = "HOME"
	}
	return agent.Usagef("%s is inside the repository, and what the settings in %s name would run; choose another or use --trust-workspace", name, dir)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// A PrivateHome describes a home that replaces the user's for one start of a CLI: a
// new [instructions.Home] with links to the user's logins. Session files are moved next
// to it at the end, so that a later start can resume the sessions.
type PrivateHome struct {
	// Home is the user's home. The CLI gets the private one in the variable Home.Env, if
	// that is set, and Command gets it as Invocation.Home.
	Home

	// Parent is the folder of private homes, relative to the workdir, such as
	// ".codex/bus".
	Parent string

	// Tree is the folder of the private home with the session files. Kept is its name
	// in the folder of kept files; "." is that folder itself. Patterns, as for
	// path.Match, select the files and folders below Tree that are kept. If the first
	// pattern matches nothing, nothing is kept.
	Tree, Kept string
	Patterns   []string

	// IsSession reports whether kept is the file of the session id, or of any session
	// if id is empty.
	IsSession func(kept, id string) bool

	// Restored completes the setup of a start that resumes a session, after its kept
	// file was copied into the home.
	Restored func(home *instructions.Home, kept string, inv Invocation, setup *Setup) error

	// Tidy is called at the end, before session files are kept. It may be nil.
	Tidy func(home *instructions.Home) error
}

// Prepare makes the home, adds the logins and the session to resume, and calls fill for
// the rest. If it fails, it removes the home.
func (p *PrivateHome) Prepare(inv Invocation, w *instructions.Workspace, fill func(*instructions.Home, *Setup) error) (Setup, error) {
	home, warning, err := w.RunHome(p.Parent, inv.TempDir, inv.Resume != "" || inv.Continue)
	if err != nil {
		return Setup{}, err
	}
	setup := Setup{
		Home:  home.Path(),
		Close: func(context.Context) []string { return p.close(home) },
	}
	if p.Env != "" {
		setup.Env = []string{p.Env + "=" + home.Path()}
	}
	if warning != "" {
		setup.Warnings = []string{warning}
	}
	for _, step := range []func() error{
		func() error { return home.KeepIfStale(p.Tree, p.Kept, p.Patterns...) },
		func() error { return p.linkLogins(inv, home, &setup) },
		func() error { return p.restore(inv, home, &setup) },
		func() error { return fill(home, &setup) },
	} {
		if err := step(); err != nil {
			return Setup{}, errors.Join(err, home.Remove())
		}
	}
	return setup, nil
}

// linkLogins links the user's logins. A login in the repository is left out: it would
// send the prompts to another account.
func (p *PrivateHome) linkLogins(inv Invocation, home *instructions.Home, setup *Setup) error {
	dir := inv.UserHome(p.Home)
	if _, err := os.Lstat(dir); dir == "" || err != nil {
		return nil
	}
	if inv.Untrusted(dir) {
		setup.Warnings = append(setup.Warnings, fmt.Sprintf("%s is inside the repository; its logins and settings are left out; use --trust-workspace to use them", dir))
		return nil
	}
	return LinkFiles(inv, home, dir, p.Logins...)
}

// LinkFiles links the files and folders of dir that exist into home under the same
// names, except those that are [Invocation.Untrusted].
func LinkFiles(inv Invocation, home *instructions.Home, dir string, names ...string) error {
	for _, name := range names {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Stat(target); err != nil || !info.Mode().IsRegular() && !info.IsDir() || inv.Untrusted(target) {
			continue
		}
		if err := home.Link(target, name); err != nil {
			return err
		}
	}
	return nil
}

// restore copies the session to resume into the home.
func (p *PrivateHome) restore(inv Invocation, home *instructions.Home, setup *Setup) error {
	if inv.Resume == "" && !inv.Continue {
		return nil
	}
	kept, err := home.FindKept(func(rel string) bool { return p.IsSession(rel, inv.Resume) })
	switch {
	case err != nil:
		return fmt.Errorf("kept sessions cannot be read: %w", err)
	case kept == "" && inv.Continue:
		return agent.Usagef("no session is kept in %s/sessions; nothing to continue", p.Parent)
	case kept == "":
		return agent.Usagef("session %q is not kept in %s/sessions; start it in this workdir first", inv.Resume, p.Parent)
	}
	if err := home.CopyIn(kept, path.Join(p.Tree, strings.TrimPrefix(kept, p.Kept+"/"))); err != nil {
		return err
	}
	return p.Restored(home, kept, inv, setup)
}

// close keeps the session files and removes the home, except logins that the CLI has
// replaced.
func (p *PrivateHome) close(home *instructions.Home) (warnings []string) {
	if err := p.keep(home); err != nil {
		warnings = append(warnings, fmt.Sprintf("the session cannot be kept for resume: %v", err))
	}
	var replaced []string
	for _, login := range p.Logins {
		if home.LinkReplaced(login) {
			replaced = append(replaced, login)
			warnings = append(warnings, fmt.Sprintf("the link to the login was replaced; the new login is left in %s, move it to your own home", filepath.Join(home.Path(), filepath.FromSlash(login))))
		}
	}
	if err := home.Remove(replaced...); err != nil {
		warnings = append(warnings, err.Error())
	}
	return warnings
}

func (p *PrivateHome) keep(home *instructions.Home) (err error) {
	if p.Tidy != nil {
		if err := p.Tidy(home); err != nil {
			return err
		}
	}
	for i, pattern := range p.Patterns {
		names, globErr := home.Glob(path.Join(p.Tree, pattern))
		if i == 0 && len(names) == 0 {
			return globErr
		}
		err = errors.Join(err, globErr)
		for _, name := range names {
			err = errors.Join(err, home.Keep(name, path.Join(p.Kept, strings.TrimPrefix(name, p.Tree+"/"))))
		}
	}
	return err
}
