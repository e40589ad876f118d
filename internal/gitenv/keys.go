package gitenv

import (
	"slices"
	"strings"
)

// plainDiff is an external diff program, called by git with seven arguments, that
// shows what git's own diff would.
const plainDiff = `f() { diff -u -- "$2" "$5"; :; }; f`

// A rule is a variable with which git, or a common extension of it, runs a program.
type rule struct {
	// key has "*" for any subsection and for any name.
	key string
	// neutral is the value that runs nothing of the repository.
	neutral string
	// harmless reports values that run nothing. An empty one never does.
	harmless func(string) bool
	// refuse: nothing overrides it.
	refuse bool
	// env is a variable of the environment that overrides it, in place of a value.
	env string
	// sets is the variable that is set in place of this one.
	sets string
	// unasked: git runs it at the commands that look at files, whatever they are.
	unasked bool
}

// rules lists what runs programs. Every line was seen to run one with plain git,
// unless the test says that this needs a later version or another program.
var rules = []rule{
	{key: "core.fsmonitor", neutral: "false", harmless: isBool, unasked: true},
	{key: "core.hookspath", neutral: "/dev/null", unasked: true},
	{key: "core.sshcommand", neutral: "ssh"},
	{key: "core.gitproxy", env: "GIT_PROXY_COMMAND"},
	{key: "core.askpass"},
	{key: "core.pager", neutral: "cat"},
	{key: "pager.*", neutral: "false", harmless: isBool},
	{key: "core.editor", neutral: ":"},
	{key: "sequence.editor", neutral: ":"},
	{key: "core.alternaterefscommand", neutral: "true"},
	{key: "interactive.difffilter", neutral: "cat"},

	{key: "filter.*.clean"},
	{key: "filter.*.smudge"},
	{key: "filter.*.process"},
	{key: "diff.external", neutral: plainDiff},
	{key: "diff.*.command", neutral: plainDiff},
	{key: "diff.*.textconv", neutral: "cat"},
	{key: "merge.*.driver", neutral: "git merge-file %A %O %B"},
	{key: "alias.*", neutral: "!false"},
	{key: "alias.*.*", neutral: "!false"},
	{key: "hook.*.command", neutral: "true"},
	{key: "gc.recentobjectshook", refuse: true},

	{key: "credential.helper"},
	{key: "credential.*.helper"},
	// The first value counts, not the last.
	{key: "remote.*.uploadpack", refuse: true, harmless: func(v string) bool { return v == "git-upload-pack" }},
	{key: "remote.*.receivepack", refuse: true, harmless: func(v string) bool { return v == "git-receive-pack" }},
	{key: "protocol.allow", sets: "protocol.ext.allow", neutral: "never"},
	{key: "protocol.ext.allow", neutral: "never"},
	{key: "submodule.*.update", neutral: "checkout", harmless: func(v string) bool { return !strings.HasPrefix(v, "!") }},

	{key: "gpg.program", neutral: "gpg"},
	{key: "gpg.openpgp.program", neutral: "gpg"},
	{key: "gpg.x509.program", neutral: "gpgsm"},
	{key: "gpg.ssh.program", neutral: "ssh-keygen"},
	{key: "gpg.ssh.defaultkeycommand"},

	{key: "trailer.*.command"},
	{key: "trailer.*.cmd"},
	{key: "tar.*.command", neutral: "false"},
	{key: "diff.tool", neutral: "false"},
	{key: "diff.guitool", neutral: "false"},
	{key: "merge.tool", neutral: "false"},
	{key: "merge.guitool", neutral: "false"},
	{key: "difftool.*.cmd", neutral: "false"},
	{key: "difftool.*.path", neutral: "false"},
	{key: "mergetool.*.cmd", neutral: "false"},
	{key: "mergetool.*.path", neutral: "false"},
	{key: "man.*.cmd", neutral: "false"},
	{key: "man.*.path", neutral: "false"},
	{key: "browser.*.cmd", neutral: "false"},
	{key: "browser.*.path", neutral: "false"},
	{key: "instaweb.httpd", neutral: "false"},
	{key: "imap.tunnel", neutral: "false"},
	{key: "sendemail.smtpserver", neutral: "localhost", harmless: func(v string) bool { return !strings.HasPrefix(v, "/") }},
	{key: "sendemail.*.smtpserver", neutral: "localhost", harmless: func(v string) bool { return !strings.HasPrefix(v, "/") }},

	{key: "lfs.*.clean", neutral: "false"},
	{key: "lfs.*.smudge", neutral: "false"},
	{key: "lfs.*.path", neutral: "false"},
}

// suffixes end the names of further variables that run programs, of rare commands
// of git, of extensions and of versions to come.
var suffixes = []string{"command", "cmd", "program", "hook", "editor", "pager", "helper", "textconv", "prog"}

// ruleFor returns the rule of a variable, or nil where its value runs nothing.
func ruleFor(e entry) *rule {
	if e.value == "" {
		return nil
	}
	section, sub, name := split(e.key)
	hasSub := len(section)+1+len(name) < len(e.key) // which can be empty
	for i := range rules {
		r := &rules[i]
		rSection, rSub, rName := split(r.key)
		if rSection == section && (rSub == sub && hasSub == (rSub != "") || rSub == "*" && hasSub) && (rName == name || rName == "*") {
			if r.harmless != nil && r.harmless(e.value) {
				return nil
			}
			return r
		}
	}
	if !isBool(e.value) && slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) }) {
		return &rule{key: e.key, neutral: "false"}
	}
	return nil
}

func isBool(value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1", "false", "no", "off", "0":
		return true
	}
	return false
}
