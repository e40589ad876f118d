package gemini

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

const (
	// homeParent is the folder of private homes.
	homeParent = ".gemini/bus"
	// homeEnv names the variable that moves Gemini CLI's home.
	homeEnv = "GEMINI_CLI_HOME"
)

// userHome is the folder with the user's .gemini.
var userHome = registry.Home{Env: homeEnv, Folder: ".", Logins: []string{".gemini/oauth_creds.json", ".gemini/gemini-credentials.json"}, FullAccess: true}

// accounts is the file with the accounts of the logins.
const accounts = ".gemini/google_accounts.json"

// userConfig describes the user's configuration.
var userConfig = registry.UserConfig{
	Modes: []agent.UserConfig{agent.UserConfigOn, agent.UserConfigOff},
	Files: func(inv registry.Invocation) []agent.ConfigFile {
		return registry.ConfigFiles(homeOfUser(inv), inv.UserConfig != agent.UserConfigOff, settingsPath, ".gemini/.env", ".env")
	},
}

// shared are further files of the user that a private home links to.
var shared = []string{accounts, ".gemini/.env", ".env", ".gemini/policies"}

var privateHome = registry.PrivateHome{
	Home:      userHome,
	Parent:    homeParent,
	Tree:      ".gemini",
	Kept:      ".",
	Patterns:  []string{"tmp/*/chats", "tmp/*/" + projectRoot, projectList},
	IsSession: isSession,
	Restored:  restored,
	Tidy:      func(home *instructions.Home) error { return tidyChats(home, time.Now()) },
}

// homeOfUser returns the user's home, or "" if it cannot be used. A home inside the
// repository may have been filled by it.
func homeOfUser(inv registry.Invocation) string {
	if home := inv.UserHome(userHome); home != "" && !inv.Untrusted(home) {
		return home
	}
	return ""
}

// linkShared links the user's environment, policies and global context files into a
// private home. In an untrusted folder Gemini CLI reads the user's variables only from
// .env, and only those for its login.
func linkShared(inv registry.Invocation, home *instructions.Home, contextNames []string) error {
	user := homeOfUser(inv)
	if user == "" {
		return nil
	}
	if inv.UserConfig == agent.UserConfigOff {
		return registry.LinkFiles(inv, home, user, accounts)
	}
	names := slices.Clone(shared)
	for _, name := range contextNames {
		if filepath.IsLocal(name) && path.Base(name) == name {
			names = append(names, ".gemini/"+name)
		}
	}
	variables := filepath.Join(user, ".gemini", ".env")
	if info, err := os.Stat(variables); !inv.TrustWorkspace && err == nil && info.Mode().IsRegular() && !inv.Untrusted(variables) {
		names = without(names, ".env")
		if err := home.Link(variables, ".env"); err != nil {
			return err
		}
	}
	return registry.LinkFiles(inv, home, user, names...)
}

// prepareOwnHome runs with the home that the caller chose, unchanged. AGENTS.md precedes
// the prompt.
func prepareOwnHome(inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	home, err := inv.CallerHome(homeEnv)
	switch {
	case err != nil:
		return registry.Setup{}, err
	case inv.Untrusted(home):
		return registry.Setup{}, agent.Usagef("%s is inside the repository, and what it names would run; choose another or use --trust-workspace", homeEnv)
	case inv.UserConfig == agent.UserConfigOff:
		return registry.Setup{}, agent.Usagef("the settings in a %s of your own cannot be left out; leave out one of them", homeEnv)
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

// latest is the name of the session that was changed last.
const latest = "latest"

// isSession reports whether a kept file is a session file: its name has the time and the
// first eight characters of the session's ID.
func isSession(kept, id string) bool {
	const known = 8
	name, ok := strings.CutSuffix(path.Base(kept), ".jsonl")
	if !ok || path.Base(path.Dir(kept)) != "chats" || !strings.HasPrefix(kept, "tmp/") {
		return false
	}
	return id == "" || len(id) >= known && strings.HasSuffix(name, "-"+id[:known])
}

// restored copies the other files of a session.
func restored(home *instructions.Home, kept string, inv registry.Invocation, setup *registry.Setup) error {
	setup.SessionCreated = createdAt(path.Base(kept))
	if inv.Continue {
		setup.Resume = latest // of one
	}
	project := path.Join(path.Dir(path.Dir(kept)), projectRoot)
	for _, name := range []string{project, projectList} {
		if err := home.CopyIn(name, ".gemini/"+name); err != nil && !notThere(err) {
			return err
		}
	}
	return nil
}

// The file in which Gemini CLI records the workdir of the sessions of a folder.
const (
	projectRoot = ".project_root"
	projectList = "projects.json"
)
