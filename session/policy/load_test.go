package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/policy"
)

// A policy is never taken from a place that an agent or a repository can write to.
func TestLoadRefusesRepositories(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"home", "repo/.git", "repo/sub/.git", "repo/module", "plain/deep", "added"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const text = `{"default":"decline"}`
	for _, name := range []string{"home/p", "repo/p", "repo/sub/p", "plain/p", "plain/deep/p", "added/p"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"repo/.git/HEAD": "ref: refs/heads/main\n", "repo/module/.git": "gitdir: ../.git/modules/module"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"home/into": "../repo/p", "repo/out": "../home", "home/sub": "../repo/sub", "home/twice": "../repo/out/p", "home/good": "p",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		file string
		dirs string
		good bool
	}{
		{"home/p", "repo", true},
		{"home/good", "repo", true},
		{"home/p", "repo/sub added", true},
		{"repo/p", "repo", false},
		{"repo/p", "repo/sub", false},
		{"repo/p", "repo/module", false},
		{"repo/p", "home/sub", false},
		{"home/into", "repo/sub", false},
		{"home/twice", "repo/sub", false},
		{"repo/out/p", "repo/sub", false},
		{"home/../repo/p", "repo/sub", false},
		{"added/p", "repo added", false},
		{"plain/p", "plain/deep", true},
		{"plain/deep/p", "plain/deep", false},
		{"plain/deep/p", "plain", false},
		{"home/nothing", "repo", false},
		{"home", "repo", false},
	} {
		var dirs []string
		for dir := range strings.FieldsSeq(test.dirs) {
			dirs = append(dirs, filepath.Join(root, dir))
		}
		p, err := policy.Load(root+"/"+test.file, dirs...)
		if test.good && (err != nil || p.Default != policy.Decline) || !test.good && !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s for %s: %+v, %v", test.file, test.dirs, p, err)
		}
	}
}
