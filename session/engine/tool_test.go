package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// Locate knows a place for every name that MayEdit permits, and calls nothing plain that
// MayEdit would not permit in a folder around all of them.
func TestLocateHostilePaths(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	start := g.Start(agent.AccessWrite)
	for _, p := range g.Paths {
		places, plain := start.Locate(p.Path)
		if plain && places == nil {
			t.Errorf("%q is plain and nowhere", p.Path)
		}
		if start.MayEdit(agent.AccessWrite, []string{p.Path}) && (!plain || slices.ContainsFunc(places, func(place string) bool {
			return !filepath.IsAbs(place) || filepath.Clean(place) != place
		})) {
			t.Errorf("%q: %q, plain %v", p.Path, places, plain)
		}
	}
}

func TestLocateFollowsLinks(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	start := g.Start(agent.AccessWrite)
	link := filepath.Join(g.Workdir, "a-link")
	if err := os.Symlink(filepath.Join(g.Outside, "new"), link); err != nil {
		t.Fatal(err)
	}
	outside, err := filepath.EvalSymlinks(g.Outside)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, "a-link", "../" + filepath.Base(g.Workdir) + "/a-link"} {
		places, plain := start.Locate(name)
		if want := []string{filepath.Join(outside, "new")}; !slices.Equal(places, want) || !plain {
			t.Errorf("%q: %q, plain %v; want %q", name, places, plain, want)
		}
	}
}

// The command of an input is known only if nothing else in it can change what is run.
func TestCommandOfInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	start := engine.Start{Workdir: dir}
	for input, want := range map[string]string{
		`{"command":"ls -l"}`: "ls -l",
		`{"command":"ls","description":"d","timeout":1,"run_in_background":true}`: "ls",
		`{"command":["bash","-lc","a 'b'"]}`:                                      "",
		`{"command":["bash","-lc","a b"]}`:                                        "'bash' '-lc' 'a b'",
		`{"command":["a\\b"]}`:                                                    "",
		`{"command":[1]}`:                                                         "",
		`{"command":{"a":"b"}}`:                                                   "",
		`{"command":"ls","cwd":"` + dir + `"}`:                                    "ls",
		`{"command":"ls","cwd":"sub"}`:                                            "ls",
		`{"command":"ls","cwd":""}`:                                               "ls",
		`{"command":"ls","workdir":"/"}`:                                          "",
		`{"command":"ls","cwd":"sub/../.."}`:                                      "",
		`{"command":"ls","cwd":1}`:                                                "",
		`{"command":"ls","dangerouslyDisableSandbox":true}`:                       "",
		`{"command":"ls","env":{"LD_PRELOAD":"x"}}`:                               "",
		`{"Command":"ls"}`:                                                        "",
		`{"cmd":"ls"}`:                                                            "",
		`{"command":"ls","command":"rm"}`:                                         "rm", // as the agent reads it
		`{}`:                                                                      "",
		`null`:                                                                    "",
		`"ls"`:                                                                    "",
		`{`:                                                                       "",
	} {
		if got := start.Command([]byte(input)); got != want {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
	}
}

// A list with an unknown file is not known at all.
func TestSetFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ files, want []string }{
		{[]string{"b", "a", "b"}, []string{"a", "b"}},
		{[]string{"a", ""}, nil},
		{nil, nil},
	} {
		tool := agent.Tool{Files: []string{"before"}}
		if engine.SetFiles(&tool, test.files); !slices.Equal(tool.Files, test.want) {
			t.Errorf("%q: %q", test.files, tool.Files)
		}
	}
}
