package gemini

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

const (
	// homeParent holds the private homes.
	homeParent = ".gemini/bus"
	// homeEnv names the variable that moves Gemini CLI's home.
	homeEnv = "GEMINI_CLI_HOME"
)

// logins are where Gemini CLI keeps its login below its home.
var logins = []string{".gemini/oauth_creds.json", accountsFile, ".gemini/gemini-credentials.json"}

const accountsFile = ".gemini/google_accounts.json"

// shared are further files of the user's that a private home has.
var shared = []string{".gemini/.env", ".env", ".gemini/policies"}

// A user is whoever the agent runs for, as far as Gemini CLI knows them.
type user struct {
	home     string // "" when there is none that can be used
	warnings []string
}

// findUser finds the user's home. One inside the repository could have been
// filled by it and counts only in a trusted workspace; a repository that is the
// home is the user's.
func findUser(inv registry.Invocation) user {
	home := homeOf(inv, homeEnv)
	if home == "" {
		home = homeOf(inv, "HOME")
	}
	if home != "" && ofRepository(inv, home) && !inv.TrustWorkspace {
		return user{warnings: []string{"the home of Gemini CLI is inside the repository; its settings and logins are left out"}}
	}
	return user{home: home}
}

// loginFiles returns where Gemini CLI keeps its login.
func loginFiles(getenv func(string) string) (files []string) {
	home := getenv(homeEnv)
	if home == "" {
		home = getenv("HOME")
	}
	if home == "" {
		return nil
	}
	for _, name := range logins {
		if name != accountsFile { // which accounts there are is no login
			files = append(files, filepath.Join(home, filepath.FromSlash(name)))
		}
	}
	return files
}

// homeOf returns the home that a variable names, absolute, or "".
func homeOf(inv registry.Invocation, name string) string {
	home := inv.Getenv(name)
	if home != "" && !filepath.IsAbs(home) {
		home = filepath.Join(inv.Workdir, home)
	}
	return home
}

// isHome reports whether dir is a home of the user's that the repository cannot
// have filled.
func isHome(inv registry.Invocation, dir string) bool {
	there, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for _, name := range []string{homeEnv, "HOME"} {
		home := homeOf(inv, name)
		if home == "" || ofRepository(inv, home) {
			continue
		}
		if info, err := os.Stat(home); err == nil && os.SameFile(info, there) {
			return true
		}
	}
	return false
}

// ofRepository reports whether the repository can have filled a home. One that is
// the root of the repository is the user's.
func ofRepository(inv registry.Invocation, home string) bool {
	if !instructions.Touches(inv.Root, home) {
		return false
	}
	root, err := os.Stat(inv.Root)
	if err != nil {
		return true
	}
	info, err := os.Lstat(home)
	return err != nil || !os.SameFile(root, info)
}

// linkInto links what is the user's into a private home, as far as it is there:
// logins, environment, policies and the global context files.
func (u user) linkInto(home *instructions.Home, contextNames []string) error {
	if u.home == "" {
		return nil
	}
	names := append(append([]string(nil), logins...), shared...)
	for _, name := range contextNames {
		if filepath.IsLocal(name) && path.Base(name) == name {
			names = append(names, ".gemini/"+name)
		}
	}
	for _, name := range names {
		target := filepath.Join(u.home, filepath.FromSlash(name))
		if info, err := os.Stat(target); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
			continue
		}
		if err := home.Link(target, name); err != nil {
			return err
		}
	}
	return nil
}

// prepareOwnHome runs with a home the caller chose. It is used as it is, so
// AGENTS.md goes before the prompt.
func prepareOwnHome(inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	home, err := inv.CallerHome(homeEnv)
	switch {
	case err != nil:
		return registry.Setup{}, err
	case ofRepository(inv, home) && !inv.TrustWorkspace:
		return registry.Setup{}, agent.Usagef("%s is inside the repository, and what it names would run; choose another or trust the workspace", homeEnv)
	case inv.Access != agent.AccessFull:
		return registry.Setup{}, agent.Usagef("access %s cannot be held with a %s of your own, since its settings would have to say so; leave it out or give access full", inv.Access, homeEnv)
	case w.Chain().Unchecked && !inv.TrustWorkspace:
		return registry.Setup{}, agent.Usagef("the folders below %s have too many entries to be checked for context files, which a %s of your own lets count; leave it out or use --trust-workspace", w.Chain().Workdir, homeEnv)
	case inv.MaxTurns > 0:
		return registry.Setup{}, agent.Usagef("the limit of turns is a setting that a %s of your own has to have; leave one of them out", homeEnv)
	}
	if !inv.TrustWorkspace {
		if err := refuseEnvOfHome(inv, w.Chain().Workdir, home); err != nil {
			return registry.Setup{}, err
		}
	}
	var setup registry.Setup
	if inv.Continue {
		setup.Resume = latest
	}
	err = setup.PrependInstructions(w.Chain(), instructions.MaxBytes)
	return setup, err
}

// latest is Gemini CLI's word for the session that was changed last.
const latest = "latest"

// restoreSession copies the session that is to be continued into the home. A
// file has the time and the first eight characters of the session's ID in its
// name.
func restoreSession(inv registry.Invocation, home *instructions.Home, setup *registry.Setup) error {
	const id = 8
	if inv.Resume == "" && !inv.Continue {
		return nil
	}
	kept, err := home.FindKept(func(rel string) bool {
		name, isSession := strings.CutSuffix(path.Base(rel), ".jsonl")
		if !isSession || path.Base(path.Dir(rel)) != "chats" || !strings.HasPrefix(rel, "tmp/") {
			return false
		}
		return inv.Continue || len(inv.Resume) >= id && strings.HasSuffix(name, "-"+inv.Resume[:id])
	})
	switch {
	case err != nil:
		return fmt.Errorf("kept sessions cannot be read: %w", err)
	case kept == "" && inv.Continue:
		return agent.Usagef("no session is kept in %s/sessions; nothing to continue", homeParent)
	case kept == "":
		return agent.Usagef("session %q is not kept in %s/sessions; start it in this workdir first", inv.Resume, homeParent)
	}
	setup.SessionCreated = createdAt(path.Base(kept))
	if inv.Continue {
		setup.Resume = latest // of one
	}
	if err := home.CopyIn(kept, ".gemini/"+kept); err != nil {
		return err
	}
	project := path.Join(path.Dir(path.Dir(kept)), projectRoot)
	for _, name := range []string{project, projectList} {
		if err := home.CopyIn(name, ".gemini/"+name); err != nil && !notThere(err) {
			return err
		}
	}
	return nil
}

// Where Gemini CLI notes to which workdir the sessions of a folder belong.
const (
	projectRoot = ".project_root"
	projectList = "projects.json"
)

// closeHome keeps the run's session files and removes the home.
func closeHome(home *instructions.Home) []string {
	var warnings []string
	if err := keepSessions(home); err != nil {
		warnings = append(warnings, fmt.Sprintf("the session cannot be kept for resume: %v", err))
	}
	var except []string
	for _, login := range logins {
		if home.LinkReplaced(login) {
			except = append(except, login)
			warnings = append(warnings, fmt.Sprintf("Gemini CLI replaced the link to its login; the new login was left in %s, move it to your own home", filepath.Join(home.Path(), login)))
		}
	}
	if err := home.Remove(except...); err != nil {
		warnings = append(warnings, err.Error())
	}
	return warnings
}

func keepSessions(home *instructions.Home) error {
	if err := tidyChats(home, time.Now()); err != nil {
		return err
	}
	chats, err := home.Glob(".gemini/tmp/*/chats")
	if err != nil || len(chats) == 0 {
		return err
	}
	names := []string{".gemini/" + projectList}
	for _, dir := range chats {
		names = append(names, dir, path.Join(path.Dir(dir), projectRoot))
	}
	for _, name := range names {
		if keepErr := home.Keep(name, strings.TrimPrefix(name, ".gemini/")); !notThere(keepErr) {
			err = errors.Join(err, keepErr)
		}
	}
	return err
}
