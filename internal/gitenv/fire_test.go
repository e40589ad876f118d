package gitenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// plain is an environment without anything of the machine's configuration.
func plain(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "TERM=dumb",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.invalid",
	}
}

// shell runs a script in dir. Its failure is not one of the test: many commands
// fail once what they run has failed.
func shell(t *testing.T, dir string, environ []string, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, environ, time.Second
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// A plant is a variable that runs $P, in .git/config, and commands that make it.
type plant struct {
	value   string // "$P" by default
	prepare string // with nothing planted
	fire    string // empty where that needs a server
	needs   string // a program that not every machine has
	since   string // a version of git
}

const (
	clash = "git checkout -qb b && echo b >f && git commit -qam b && git checkout -q main && echo a >f && git commit -qam a"
	fill  = "printf 'protocol=https\nhost=h.invalid\n\n' | git credential fill"
	sub   = "git clone -q . s && git -C s checkout -q HEAD~1 && git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s && " +
		`printf '[submodule "s"]\n\tpath = s\n\turl = ./\n' >.gitmodules && git config submodule.s.url . && git config submodule.s.active true`
	// Without a tool of the repository git takes an editor that it finds.
	noEditors = `mkdir -p e; for e in vim nvim gvim emacs; do printf '#!/bin/sh\n' >e/$e; chmod +x e/$e; done; PATH=$PWD/e:$PATH; `
	tty       = `script -qec "%s" /dev/null </dev/null`
)

// plants has every rule, by its key with x for "*".
var plants = map[string]plant{
	"core.fsmonitor":                      {fire: "git status"},
	"core.hookspath":                      {value: "$D", prepare: `cp "$P" "$D/pre-commit"`, fire: "git commit --allow-empty -m x"},
	"core.sshcommand":                     {value: "$Q", fire: "git ls-remote ssh://h.invalid/x"},
	"core.gitproxy":                       {value: "$Q", fire: "git ls-remote git://h.invalid/x"},
	"core.askpass":                        {fire: fill},
	"core.pager":                          {fire: "git grep -O one"},
	"pager.log":                           {fire: fmt.Sprintf(tty, "git log"), needs: "script"},
	"core.editor":                         {fire: "git commit --allow-empty"},
	"sequence.editor":                     {fire: "git rebase -i HEAD~1"},
	"core.alternaterefscommand":           {prepare: "git clone -q . other && echo $PWD/other/.git/objects >.git/objects/info/alternates", fire: "git rev-list --alternate-refs"},
	"interactive.difffilter":              {prepare: "echo two >f", fire: "export TERM=xterm; " + fmt.Sprintf(`script -qec "%s" /dev/null </dev/null`, "git add -p"), needs: "script"},
	"filter.x.clean":                      {prepare: "touch -d @1 f", fire: "git status"},
	"filter.x.smudge":                     {prepare: "rm f", fire: "git checkout -- f"},
	"filter.x.process":                    {prepare: "touch -d @1 f", fire: "git status"},
	"diff.external":                       {prepare: "echo two >f", fire: "git diff"},
	"diff.x.command":                      {prepare: "echo two >f", fire: "git diff"},
	"diff.x.textconv":                     {prepare: "echo two >f", fire: "git diff"},
	"merge.x.driver":                      {prepare: clash, fire: "git merge b"},
	"alias.x":                             {value: "!$P", fire: "git x"},
	"alias.x.command":                     {value: "!$P", fire: "git x", since: "2.54"},
	"hook.x.command":                      {prepare: "git config hook.x.event pre-commit", fire: "git commit --allow-empty -m x", since: "2.54"},
	"credential.helper":                   {value: "!$P", fire: fill},
	"credential.https://h.invalid.helper": {value: "!$P", fire: fill},
	"remote.x.uploadpack":                 {value: `"$P </dev/null #"`, prepare: "git remote add x .", fire: "git fetch x"},
	"remote.x.receivepack":                {value: `"$P </dev/null #"`, prepare: "git remote add x .", fire: "git push x main:other"},
	"protocol.allow":                      {value: "always", prepare: "git remote add x \"ext::$Q\"", fire: "git fetch x"},
	"protocol.ext.allow":                  {value: "always", prepare: "git remote add x . && git config remote.x.vcs ext && git config remote.x.url \"$Q\"", fire: "git fetch x"},
	"submodule.s.update":                  {value: "!$P", prepare: sub, fire: "git submodule update"},
	"gpg.program":                         {fire: "git commit -S --allow-empty -m x"},
	"gpg.openpgp.program":                 {fire: "git commit -S --allow-empty -m x"},
	"gpg.x509.program":                    {prepare: "git config gpg.format x509", fire: "git commit -S --allow-empty -m x"},
	"gpg.ssh.program":                     {prepare: "git config gpg.format ssh; git config user.signingkey $PWD/f", fire: "git commit -S --allow-empty -m x"},
	"gpg.ssh.defaultkeycommand":           {prepare: "git config gpg.format ssh", fire: "git commit -S --allow-empty -m x"},
	"trailer.x.command":                   {fire: "echo x | git interpret-trailers"},
	"trailer.x.cmd":                       {fire: "echo x | git interpret-trailers --trailer x=1"},
	"tar.x.command":                       {fire: "git archive --format=x HEAD"},
	"diff.tool":                           {value: "../../../../../../..$P", prepare: "echo two >f", fire: noEditors + "git difftool -y"},
	"diff.guitool":                        {value: "../../../../../../..$P", prepare: "echo two >f", fire: noEditors + "git difftool -y -g"},
	"merge.tool":                          {value: "../../../../../../..$P", prepare: clash, fire: noEditors + "git merge b; git mergetool -y"},
	"merge.guitool":                       {value: "../../../../../../..$P", prepare: clash, fire: noEditors + "git merge b; git mergetool -y -g"},
	"difftool.x.cmd":                      {prepare: "echo two >f", fire: "git difftool -y -t x"},
	"difftool.vimdiff.path":               {prepare: "echo two >f", fire: "git difftool -y -t vimdiff"},
	"mergetool.x.cmd":                     {prepare: clash, fire: "git merge b; git mergetool -y -t x"},
	"mergetool.vimdiff.path":              {prepare: clash, fire: "git merge b; git mergetool -y -t vimdiff"},
	"man.x.cmd":                           {prepare: "git config man.viewer x", fire: "git help -m log"},
	"man.man.path":                        {fire: "git help -m log"},
	"browser.x.cmd":                       {fire: "git web--browse -b x f"},
	"browser.firefox.path":                {fire: "git web--browse -b firefox f"},
	"instaweb.httpd":                      {fire: "git instaweb"},
	"imap.tunnel":                         {value: "$Q", prepare: "git config imap.folder x", fire: "git format-patch --stdout -1 | git imap-send"},
	"sendemail.smtpserver":                {fire: "git format-patch -1 -o p && git send-email --to t@example.invalid --confirm=never p/*", needs: "git-send-email"},
	"sendemail.i.smtpserver":              {fire: "git format-patch -1 -o p && git send-email --identity=i --to t@example.invalid --confirm=never p/*", needs: "git-send-email"},
	"lfs.extension.x.clean":               {prepare: "git config lfs.extension.x.smudge cat; git config lfs.extension.x.priority 0; echo 'g filter=lfs' >>.gitattributes; git config filter.lfs.clean 'git-lfs clean -- %f'; echo g >g", fire: "git add g", needs: "git-lfs"},
	"lfs.extension.x.smudge":              {}, // git-lfs runs it while it downloads
	"lfs.customtransfer.x.path":           {}, // git-lfs runs it while it uploads
	"gc.recentobjectshook":                {fire: "git gc --prune=now", since: "2.42"},
	// One that only its ending gives away.
	"sendemail.sendmailcmd": {fire: "git format-patch -1 -o p && git send-email --to t@example.invalid --confirm=never p/*", needs: "git-send-email"},
}

// repository makes one with two commits, whose file f has drivers called x.
func repository(t *testing.T) (repo, home string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo, home = filepath.Join(dir, "repo"), filepath.Join(dir, "home")
	for _, d := range []string{repo, home, filepath.Join(dir, "hooks")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The shell writes the programs: what this process has open for writing, a child
	// that is being started keeps open, and what is open for writing cannot be run.
	shell(t, repo, plain(home), "for last in program:cat quiet:; do f=../${last%:*}; printf '#!/bin/sh\\n: >%s/fired\\n%s\\n' '"+dir+"' \"${last#*:}\" >$f; chmod +x $f; done")
	shell(t, repo, plain(home), "git init -q -b main && echo 'f filter=x diff=x merge=x' >.gitattributes && echo zero >f && git add . && git commit -qm 0 && echo one >f && git commit -qam 1")
	return repo, home
}

// fires runs a plant and reports whether it ran its program.
func (p plant) fires(t *testing.T, repo string, environ []string) (bool, string) {
	t.Helper()
	fired := filepath.Join(filepath.Dir(repo), "fired")
	os.Remove(fired)
	out := shell(t, repo, environ, p.fire)
	_, err := os.Lstat(fired)
	return err == nil, out
}

func (p plant) put(t *testing.T, repo, home, key string) {
	t.Helper()
	dir := filepath.Dir(repo)
	paths := strings.NewReplacer("$P", filepath.Join(dir, "program"), "$Q", filepath.Join(dir, "quiet"), "$D", filepath.Join(dir, "hooks"))
	if p.prepare != "" {
		shell(t, repo, append(plain(home), "P="+dir+"/program", "Q="+dir+"/quiet", "D="+dir+"/hooks"), p.prepare)
	}
	value := p.value
	if value == "" {
		value = "$P"
	}
	section, sub, name := split(key)
	text := fmt.Sprintf("[%s]\n\t%s = %s\n", section, name, paths.Replace(value))
	if sub != "" {
		text = fmt.Sprintf("[%s %q]\n\t%s = %s\n", section, sub, name, paths.Replace(value))
	}
	f, err := os.OpenFile(filepath.Join(repo, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// canFire reports whether this machine has what runs the plant: a version of git, or
// a program next to it.
func (p plant) canFire(t *testing.T, home string) bool {
	t.Helper()
	if p.fire == "" {
		return false
	}
	if p.needs != "" {
		_, err := exec.LookPath(p.needs)
		core := strings.TrimSpace(shell(t, home, plain(home), "git --exec-path"))
		if _, inGit := os.Stat(filepath.Join(core, p.needs)); err != nil && inGit != nil {
			return false
		}
	}
	var major, minor, wantMajor, wantMinor int
	fmt.Sscanf(shell(t, home, plain(home), "git --version"), "git version %d.%d", &major, &minor)
	fmt.Sscanf(p.since, "%d.%d", &wantMajor, &wantMinor)
	return major > wantMajor || major == wantMajor && minor >= wantMinor
}

// read returns what git takes the variable to be.
func (p plant) read(t *testing.T, repo, key string, environ []string) string {
	t.Helper()
	return strings.TrimSuffix(shell(t, repo, environ, "git config --get "+key), "\n")
}

// Each rule names a variable with which plain git runs a program, and none of them
// does so with the environment of Neutralize. Where nothing on this machine runs it,
// git must at least read another value.
func TestHostileRulesFireAndAreNeutralised(t *testing.T) {
	t.Parallel()
	for key, p := range plants {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			repo, home := repository(t)
			p.put(t, repo, home, key)
			shell(t, filepath.Dir(repo), plain(home), "cp -a repo again")
			canFire := p.canFire(t, home)
			if canFire {
				if fired, out := p.fires(t, repo, plain(home)); !fired {
					t.Fatalf("plain git does not run it:\n%s", out)
				}
			}
			planted := p.read(t, repo, key, plain(home))
			if planted == "" {
				t.Fatal("it is not planted")
			}
			shell(t, filepath.Dir(repo), plain(home), "rm -rf repo && mv again repo")
			got, err := Neutralize(t.Context(), Query{Workdir: repo, Below: []string{repo}, Environ: plain(home)})
			if err != nil {
				if strings.Contains(err.Error(), key) && slices.ContainsFunc(rules, func(r rule) bool {
					return r.refuse && &rules[slices.IndexFunc(rules, func(o rule) bool { return o.key == r.key })] == ruleFor(entry{key: key, value: "/x"})
				}) {
					return
				}
				t.Fatal(err)
			}
			environ := append(plain(home), got.Env...)
			if !canFire {
				if p.read(t, repo, key, environ) == planted {
					t.Errorf("git reads what was planted in spite of %q", got.Env)
				}
			} else if fired, out := p.fires(t, repo, environ); fired {
				t.Errorf("it is run in spite of %q:\n%s", got.Env, out)
			}
			if !strings.Contains(got.String(), filepath.Join(repo, ".git/config")+": ") || !strings.Contains(got.String(), key) {
				t.Errorf("%q does not name the file and %s", got.String(), key)
			}
		})
	}
}

func TestEveryRuleIsPlanted(t *testing.T) {
	t.Parallel()
	for i := range rules {
		if rules[i].key == "alias.*.*" || rules[i].key == "hook.*.command" {
			continue // tested with a version that has them
		}
		if !slices.ContainsFunc(slices.Collect(func(yield func(string) bool) {
			for key := range plants {
				if !yield(key) {
					return
				}
			}
		}), func(key string) bool {
			return ruleFor(entry{key: key, value: "/x"}) == &rules[i] || ruleFor(entry{key: key, value: "!x"}) == &rules[i]
		}) {
			t.Errorf("no plant for %s", rules[i].key)
		}
	}
}
