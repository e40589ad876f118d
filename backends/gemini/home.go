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
	// homeParent holds the private homes.
	homeParent = ".gemini/bus"
	// homeEnv names the variable that moves Gemini CLI's home.
	homeEnv = "GEMINI_CLI_HOME"
)

// userHome is the folder that has the .gemini of the user's.
var userHome = registry.Home{Env: homeEnv, Folder: ".", Logins: []string{".gemini/oauth_creds.json", ".gemini/gemini-credentials.json"}}

// shared are further files of the user's that a private home has.
var shared = []string{".gemini/google_accounts.json", ".gemini/.env", ".env", ".gemini/policies"}

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

// homeOfUser returns the user's home; "" where there is none that can be used. One
// inside the repository could have been filled by it.
func homeOfUser(inv registry.Invocation) string {
	if home := inv.UserHome(userHome); home != "" && !inv.Untrusted(home) {
		return home
	}
	return ""
}

// linkShared links what is the user's into a private home: environment, policies and
// the global context files. In a folder that is not trusted Gemini CLI looks for the
// user's variables in .env alone, and takes those for its login.
func linkShared(inv registry.Invocation, home *instructions.Home, contextNames []string, distrusted bool) error {
	user := homeOfUser(inv)
	if user == "" {
		return nil
	}
	names := slices.Clone(shared)
	for _, name := range contextNames {
		if filepath.IsLocal(name) && path.Base(name) == name {
			names = append(names, ".gemini/"+name)
		}
	}
	variables := filepath.Join(user, ".gemini", ".env")
	if info, err := os.Stat(variables); distrusted && err == nil && info.Mode().IsRegular() && !inv.Untrusted(variables) {
		names = without(names, ".env")
		if err := home.Link(variables, ".env"); err != nil {
			return err
		}
	}
	return registry.LinkFiles(inv, home, user, names...)
}

// prepareOwnHome runs with a home the caller chose. It is used as it is, so
// AGENTS.md goes before the prompt.
func prepareOwnHome(inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	home, err := inv.CallerHome(homeEnv)
	switch {
	case err != nil:
		return registry.Setup{}, err
	case inv.Untrusted(home):
		return registry.Setup{}, agent.Usagef("%s is inside the repository, and what it names would run; choose another or use --trust-workspace", homeEnv)
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

// latest is what Gemini CLI calls the session that was changed last.
const latest = "latest"

// isSession reports whether a kept file is that of a session: its name has the time
// and the first eight characters of the session's ID.
func isSession(kept, id string) bool {
	const known = 8
	name, ok := strings.CutSuffix(path.Base(kept), ".jsonl")
	if !ok || path.Base(path.Dir(kept)) != "chats" || !strings.HasPrefix(kept, "tmp/") {
		return false
	}
	return id == "" || len(id) >= known && strings.HasSuffix(name, "-"+id[:known])
}

// restored copies what belongs to a session besides its file.
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

// Where Gemini CLI notes to which workdir the sessions of a folder belong.
const (
	projectRoot = ".project_root"
	projectList = "projects.json"
)
