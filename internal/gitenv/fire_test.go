package gitenv

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/internal/testwait"
)

// shared has what all tests use: "program" and "quiet", which note that they were run, and
// once a test asks for them, "repo" and "bin".
var shared string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gitenv-")
	if err != nil {
		panic(err)
	}
	shared = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// plain is an environment without anything of the machine's configuration. Programs that
// git would take in place of one of the repository do nothing.
func plain(home string) []string {
	return []string{
		"PATH=" + filepath.Join(filepath.Dir(home), "bin") + ":" + filepath.Join(shared, "bin") + ":" + os.Getenv("PATH"),
		"HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "TERM=xterm",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.invalid",
		"FIRED=" + filepath.Join(filepath.Dir(home), "fired"),
	}
}

// shell runs a script in dir, without a terminal. Its failure is not one of the test: many
// commands fail once what they run has failed.
func shell(t *testing.T, dir string, environ []string, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, environ, testwait.Limit
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// A firing is a script with which plain git runs a program for each of some variables. They
// are in .git/config of one repository.
type firing struct {
	vars    map[string]string // values: "$P" a program, "$Q" one that reads nothing, "$D" a folder of hooks, "$S" a path to a shell script
	prepare string            // with nothing planted
	fire    string            // empty where that needs a server
	needs   string            // a program that not every machine has
	since   string            // a version of git
}

// In the repository the files f and g have drivers called x and y, and all but f conflict with
// branch b.
var firings = map[string]firing{
	"commit": {
		vars: map[string]string{"core.fsmonitor": "$P", "core.hookspath": "$D", "core.editor": "$P", "gpg.program": "$P"},
		fire: "git commit -qeS -m x --allow-empty",
	},
	"sign": {
		vars: map[string]string{"gpg.openpgp.program": "$P", "gpg.x509.program": "$P", "gpg.ssh.program": "$P", "gpg.ssh.defaultkeycommand": "$P"},
		fire: "c='commit-tree -Sk -m x HEAD^{tree}'; git $c; git -c gpg.format=x509 $c; git -c gpg.format=ssh $c; git -c gpg.format=ssh commit-tree -S -m x HEAD^{tree}",
	},
	"hook": {vars: map[string]string{"hook.x.command": "$P"}, prepare: "git config hook.x.event pre-commit", fire: "git commit --allow-empty -m x", since: "2.54"},
	"diff": {
		vars: map[string]string{"diff.external": "$P", "diff.x.command": "$P", "diff.y.textconv": "$P", "filter.x.clean": "$P", "filter.x.smudge": "$P", "filter.y.process": "$P"},
		fire: "for f in f g k; do echo three >$f; done; git diff; git diff --no-ext-diff; git checkout -- f",
	},
	"merge": {vars: map[string]string{"merge.x.driver": "$P"}, fire: "git merge b"},
	// The functions with which git difftool and git mergetool find and start a tool.
	"tools": {
		vars: map[string]string{
			"merge.tool": "$S", "merge.guitool": "$S", "mergetool.x.cmd": "$P", "mergetool.kdiff3.path": "$P",
			"diff.tool": "$S", "diff.guitool": "$S", "difftool.x.cmd": "$P", "difftool.kdiff3.path": "$P",
		},
		fire: `. "$(git --exec-path)/git-mergetool--lib"; BACKUP=../backup
			for TOOL_MODE in merge diff; do
				for GIT_MERGETOOL_GUI in false true; do get_merge_tool; done
				(initialize_merge_tool x; ${TOOL_MODE}_cmd)
				(initialize_merge_tool kdiff3; run_merge_tool kdiff3)
			done`,
	},
	"pager":                {vars: map[string]string{"core.pager": "$P"}, fire: "git grep -O 4"},
	"pager of log":         {vars: map[string]string{"pager.log": "$P"}, fire: `script -qec "git log" /dev/null </dev/null`, needs: "script"},
	"interactive":          {vars: map[string]string{"interactive.difffilter": "$P"}, fire: `echo three >k; script -qec "git add -p" /dev/null </dev/null`, needs: "script"},
	"sequence":             {vars: map[string]string{"sequence.editor": "$P"}, fire: "git rebase -i HEAD~1"},
	"alternates":           {vars: map[string]string{"core.alternaterefscommand": "$P"}, prepare: "cp -a .git ../other && echo ../../../other/objects >.git/objects/info/alternates", fire: "git rev-list --alternate-refs"},
	"alias":                {vars: map[string]string{"alias.x": "!$P"}, fire: "git x"},
	"alias of two parts":   {vars: map[string]string{"alias.x.command": "!$P"}, fire: "git x", since: "2.54"},
	"credential":           {vars: map[string]string{"core.askpass": "$P", "credential.helper": "!$P", "credential.https://h.invalid.helper": "!$P"}, fire: "printf 'protocol=https\nhost=h.invalid\n\n' | git credential fill"},
	"transport":            {vars: map[string]string{"core.sshcommand": "$Q", "core.gitproxy": "$Q"}, fire: "git ls-remote ssh://h.invalid/x; git ls-remote git://127.0.0.1:1/x"},
	"pack":                 {vars: map[string]string{"remote.x.uploadpack": "$Q #", "remote.x.receivepack": "$Q #"}, prepare: "git config remote.x.url .", fire: "git ls-remote x; git push x main:other"},
	"protocol":             {vars: map[string]string{"protocol.allow": "always"}, fire: "git ls-remote ext::protocol.allow"},
	"protocol of the name": {vars: map[string]string{"protocol.ext.allow": "always"}, fire: "git ls-remote ext::protocol.ext.allow"},
	"submodule": {
		vars: map[string]string{"submodule.s.update": "!$P"},
		prepare: "mkdir s && cp -a .git s && git update-index --add --cacheinfo 160000,$(git rev-parse b),s && " +
			`printf '[submodule "s"]\n\tpath = s\n\turl = ./\n' >.gitmodules && printf '[submodule "s"]\n\turl = .\n\tactive = true\n' >>.git/config`,
		fire: "git submodule update",
	},
	"trailer":           {vars: map[string]string{"trailer.x.cmd": "$P", "trailer.y.command": "$P"}, fire: "echo x | git interpret-trailers --trailer x=1"},
	"archive":           {vars: map[string]string{"tar.x.command": "$P"}, fire: "git archive --format=x HEAD"},
	"help":              {vars: map[string]string{"man.x.cmd": "$P"}, prepare: "git config man.viewer x", fire: "git help -m log"},
	"help by man":       {vars: map[string]string{"man.man.path": "$P"}, fire: "git help -m log"},
	"browser":           {vars: map[string]string{"browser.x.cmd": "$P", "browser.firefox.path": "$P"}, fire: "git web--browse -b x f; git web--browse -b firefox f"},
	"instaweb":          {vars: map[string]string{"instaweb.httpd": "$P"}, fire: "git instaweb"},
	"imap":              {vars: map[string]string{"imap.tunnel": "$Q"}, prepare: "git config imap.folder x", fire: `printf 'From x Mon Sep 17 00:00:00 2001\nFrom: x\nDate: x\nSubject: x\n\nx\n' | git imap-send`},
	"mail":              {vars: map[string]string{"sendemail.smtpserver": "$A", "sendemail.i.smtpserver": "$A"}, fire: "git format-patch -1 -o p; for i in '' --identity=i; do git send-email $i --to t@example.invalid --confirm=never p/*; done", needs: "git-send-email"},
	"mail by a command": {vars: map[string]string{"sendemail.sendmailcmd": "$P"}, fire: "git format-patch -1 -o p && git send-email --to t@example.invalid --confirm=never p/*", needs: "git-send-email"}, // only its ending gives it away
	"lfs": {
		vars:    map[string]string{"lfs.extension.x.clean": "$P"},
		prepare: "git config lfs.extension.x.smudge cat; git config lfs.extension.x.priority 0; echo 'n filter=lfs' >>.gitattributes; git config filter.lfs.clean 'git-lfs clean -- %f'",
		fire:    "echo n >n; git add n", needs: "git-lfs",
	},
	"lfs with a server": {vars: map[string]string{"lfs.extension.x.smudge": "$P", "lfs.customtransfer.x.path": "$P"}}, // while it downloads and uploads
	"gc":                {vars: map[string]string{"gc.recentobjectshook": "$P"}, fire: "git gc --prune=now", since: "2.42"},
}

// folders returns the names of a repository and a home in a new folder.
func folders(t *testing.T) (repo, home string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo, home = filepath.Join(dir, "repo"), filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	return repo, home
}

// empty returns a repository without commits, made without git, and a home.
func empty(t *testing.T) (repo, home string) {
	t.Helper()
	repo, home = folders(t)
	write(t, repo+"/.git/HEAD", "ref: refs/heads/main\n")
	write(t, repo+"/.git/config", "")
	for _, d := range []string{"objects/info", "refs", "hooks", "info"} {
		if err := os.MkdirAll(filepath.Join(repo, ".git", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return repo, home
}

// repository returns a copy of one with some commits and a branch b, with which the files
// conflict, and a home. Next to them are "bin/program",
// which notes in the folder "fired" that it was run, and a folder for hooks.
func repository(t *testing.T) (repo, home string) {
	t.Helper()
	testneed.Program(t, "git")
	if err := made(); err != nil {
		t.Fatal(err)
	}
	repo, home = folders(t)
	dir := filepath.Dir(repo)
	for _, d := range []string{"bin", "fired", "hooks"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(repo, os.DirFS(filepath.Join(shared, "repo"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(shared, "program"), filepath.Join(dir, "bin/program")); err != nil {
		t.Fatal(err)
	}
	return repo, home
}

// made makes the files that all tests use. A shell writes the programs: what this process
// has open for writing, a child that is being started keeps open, and what is open for
// writing cannot be run.
var made = sync.OnceValue(func() error {
	cmd := exec.Command("/bin/sh", "-ec", `mkdir bin repo
for last in program:cat quiet:; do
	printf '#!/bin/sh\n: >"$FIRED/${0##*/}"\n%s\n' "${last#*:}" >${last%:*}
done
printf '#!/bin/sh\n' >bin/kompare
cp bin/kompare bin/tortoisemerge
chmod +x program quiet bin/*
for name in ssh gpg gpgsm ssh-keygen man; do ln -s "$(command -v false)" bin/$name; done
cd repo
git -c init.templateDir= init -q -b main
mkdir -p .git/hooks .git/info
printf '[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n' >>.git/config
commit() {
	printf 'commit refs/heads/%s\nmark :%s\ncommitter t <t@example.invalid> 0 +0000\ndata <<.\n%s\n.\n%s\n' "$1" "$2" "$2" "$3"
	printf 'M 100644 inline .gitattributes\ndata <<.\nf filter=x diff=x merge=x\ng filter=y diff=y\n.\n'
	for f in f g k l m; do printf 'M 100644 inline %s\ndata <<.\n%s\n.\n' $f $2; done
}
{ commit main 1 ''; commit main 2 ''; commit b 3 'from :2'; commit main 4 'from :2'; } | git fast-import --quiet
git reset -q --hard
`)
	cmd.Dir, cmd.Env = shared, plain(filepath.Join(shared, "home"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %s", err, out)
	}
	return nil
})

// put plants the variables of a firing in a repository.
func (f firing) put(t *testing.T, repo, home string) {
	t.Helper()
	dir := filepath.Dir(repo)
	if f.prepare != "" {
		shell(t, repo, plain(home), f.prepare)
	}
	config, err := os.ReadFile(repo + "/.git/config")
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range f.vars {
		name := strings.ReplaceAll(key, "/", "_")
		program := "program"
		switch {
		case strings.Contains(value, "$Q") || strings.HasPrefix(key, "protocol."):
			program = "quiet"
		case value == "$D":
			name = "../hooks/pre-commit"
		case value == "$S":
			write(t, filepath.Join(dir, "bin", name), `: >"$FIRED/`+name+"\"\n")
			program = ""
		}
		if program != "" {
			if err := os.Symlink(filepath.Join(shared, program), filepath.Join(dir, "bin", name)); err != nil {
				t.Fatal(err)
			}
		}
		value = strings.NewReplacer("$P", name, "$Q", name, "$A", filepath.Join(dir, "bin", name), "$D", filepath.Join(dir, "hooks"), "$S", strings.Repeat("../", 16)+filepath.Join(dir, "bin", name)).Replace(value)
		config = append(config, setting(key, value)...)
	}
	write(t, repo+"/.git/config", string(config))
}

func setting(key, value string) string {
	section, sub, last := split(key)
	if sub != "" {
		section += fmt.Sprintf(" %q", sub)
	}
	return fmt.Sprintf("[%s]\n\t%s = %q\n", section, last, value)
}

// run runs the script of a firing in dir, and returns the programs that were run and its
// output.
func (f firing) run(t *testing.T, dir string, environ []string) (programs []string, out string) {
	t.Helper()
	out = shell(t, dir, environ, f.fire)
	fired, _ := agent.LookupEnv(environ, "FIRED")
	list, err := os.ReadDir(fired)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		programs = append(programs, e.Name())
		os.Remove(filepath.Join(fired, e.Name()))
	}
	return programs, out
}

// version returns the version of git, and the folder of its programs.
var version = sync.OnceValues(func() (number [2]int, dir string) {
	out, _ := exec.Command("git", "--version").Output()
	fmt.Sscanf(string(out), "git version %d.%d", &number[0], &number[1])
	out, _ = exec.Command("git", "--exec-path").Output()
	return number, strings.TrimSpace(string(out))
})

// need ends the test where this machine lacks the program that runs the firing.
func (f firing) need(t *testing.T) {
	t.Helper()
	if f.needs == "" {
		return
	}
	_, dir := version()
	if _, err := os.Stat(filepath.Join(dir, f.needs)); err != nil {
		testneed.Program(t, f.needs)
	}
}

// canRun reports whether the git of this machine can run the firing.
func (f firing) canRun() bool {
	number, _ := version()
	var since [2]int
	fmt.Sscanf(f.since, "%d.%d", &since[0], &since[1])
	return f.fire != "" && slices.Compare(number[:], since[:]) >= 0
}

// refuses reports whether Neutralize refuses a variable of the firing.
func (f firing) refuses() bool {
	for key := range f.vars {
		if r := ruleOf(key); r != nil && r.refuse {
			return true
		}
	}
	return false
}

// ruleOf returns the rule of a variable that runs a program.
func ruleOf(key string) *rule {
	return cmp.Or(ruleFor(entry{key: key, value: "/x"}), ruleFor(entry{key: key, value: "!x"}))
}

// Each rule names a variable with which plain git runs a program, and none of them
// does so with the environment of Neutralize.
func TestHostileRulesFireAndAreNeutralised(t *testing.T) {
	t.Parallel()
	for name, f := range firings {
		if f.refuses() || !f.canRun() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.need(t)
			repo, home := repository(t)
			f.put(t, repo, home)
			clean := filepath.Dir(repo) + "/clean"
			if err := os.CopyFS(clean, os.DirFS(repo)); err != nil {
				t.Fatal(err)
			}
			f.fires(t, repo, home)
			if err := os.RemoveAll(repo); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(clean, repo); err != nil {
				t.Fatal(err)
			}
			got := neutralize(t, repo, plain(home))
			if fired, out := f.run(t, repo, append(plain(home), got.Env...)); fired != nil {
				t.Errorf("%q are run in spite of %q:\n%s", fired, got.Env, out)
			}
			for key := range f.vars {
				if !strings.Contains(got.String(), filepath.Join(repo, ".git/config")+": ") || !strings.Contains(got.String(), key) {
					t.Errorf("%q does not name the file and %s", got.String(), key)
				}
			}
		})
	}
}

// fires tests that plain git runs the program of every variable.
func (f firing) fires(t *testing.T, repo, home string) {
	t.Helper()
	var want []string
	for key, value := range f.vars {
		want = append(want, strings.ReplaceAll(key, "/", "_"))
		if value == "$D" {
			want[len(want)-1] = "pre-commit"
		}
	}
	slices.Sort(want)
	if fired, out := f.run(t, repo, plain(home)); !slices.Equal(fired, want) {
		t.Fatalf("plain git runs %q, want %q:\n%s", fired, want, out)
	}
}

// What nothing overrides is an error that names it.
func TestHostileRulesFireAndAreRefused(t *testing.T) {
	t.Parallel()
	for name, f := range firings {
		if !f.refuses() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.need(t)
			repo, home := repository(t)
			f.put(t, repo, home)
			if f.canRun() {
				f.fires(t, repo, home)
			}
			for key := range f.vars {
				write(t, repo+"/.git/config", setting(key, "/x"))
				_, err := Neutralize(t.Context(), Query{Workdir: repo, Below: []string{repo}, Environ: plain(home)})
				if err == nil || !strings.Contains(err.Error(), key) {
					t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
}

// git reads the harmless value of each variable, also of those that this machine has
// nothing to run for, when all are planted together.
func TestHostileRulesAreOverridden(t *testing.T) {
	t.Parallel()
	repo, home := repository(t)
	all := firing{vars: make(map[string]string)}
	for _, f := range firings {
		if !f.refuses() {
			maps.Copy(all.vars, f.vars)
		}
	}
	all.put(t, repo, home)
	read := func(environ []string) map[string]string {
		values := make(map[string]string)
		for item := range strings.SplitSeq(shell(t, repo, environ, "git config --null --list"), "\x00") {
			key, value, _ := strings.Cut(item, "\n")
			values[key] = value
		}
		return values
	}
	got := neutralize(t, repo, plain(home))
	planted, now := read(plain(home)), read(append(plain(home), got.Env...))
	for key := range all.vars {
		switch r := ruleOf(key); {
		case planted[key] == "":
			t.Errorf("%s is not planted", key)
		case r != nil && (r.env != "" || r.sets != ""), strings.HasPrefix(key, "credential."):
			// what git runs shows it
		case now[key] == planted[key]:
			t.Errorf("git reads %s=%s in spite of %q", key, now[key], got.Env)
		}
	}
}

func TestEveryRuleIsPlanted(t *testing.T) {
	t.Parallel()
	planted := make(map[*rule]bool)
	for _, f := range firings {
		for key := range f.vars {
			planted[ruleOf(key)] = true
		}
	}
	for i := range rules {
		if !planted[&rules[i]] {
			t.Errorf("no plant for %s", rules[i].key)
		}
	}
}
