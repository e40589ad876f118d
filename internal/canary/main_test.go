package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/verify"
)

// npmVariable makes the test binary an npm that writes its arguments to a file.
const npmVariable = "CANARY_TEST_NPM"

func TestMain(m *testing.M) {
	if file := os.Getenv(npmVariable); file != "" {
		if os.WriteFile(file, []byte(strings.Join(os.Args[1:], "\n")), 0o600) != nil || os.Getenv(npmVariable+"_FAILS") != "" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// results returns results from texts "CHECK STATUS DETAIL".
func results(texts ...string) (all []verify.Result) {
	for _, text := range texts {
		name, rest, _ := strings.Cut(text, " ")
		status, detail, _ := strings.Cut(rest, " ")
		all = append(all, verify.Result{Check: name, Promise: "It is not shown.", Status: verify.Status(status), Detail: detail})
	}
	return all
}

// play runs a canary on a table of CLIs, which has fake kept results, whose installation
// fails for the package "gone", and which are verified with the results in found.
func play(t *testing.T, table string, kept, found map[string][]verify.Result) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agents.txt")
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	c := canary{
		out: &out,
		install: func(_ context.Context, _, npmPackage string) error {
			if npmPackage == "gone" {
				return errors.New("no such package")
			}
			return nil
		},
		find: func(runtime string) (verify.Target, bool) {
			all, ok := kept[runtime]
			return verify.Target{Runtime: runtime, Verified: verify.Record{Runtime: runtime, Version: "1.0", Results: all}}, ok
		},
		verify: func(_ context.Context, target verify.Target, o verify.Options) (verify.Report, error) {
			bin, _, _ := strings.Cut(strings.TrimPrefix(o.Environ[0], "PATH="), string(filepath.ListSeparator))
			if found[target.Runtime] == nil {
				bin = "/usr/bin" // another installation
			}
			return verify.Report{Runtime: target.Runtime, Path: filepath.Join(bin, target.Runtime), Version: "2.0", Results: found[target.Runtime]}, nil
		},
	}
	err := c.run(t.Context(), file, t.TempDir())
	return out.String(), err
}

func TestCanary(t *testing.T) {
	t.Parallel()
	const table = "# comment\n\nalpha @x/alpha 1.0\n"
	kept := map[string][]verify.Result{"alpha": results("a kept", "b broken", "c known", "d unsupported no tool")}
	for name, test := range map[string]struct {
		table     string
		found     []verify.Result
		out, fail string
	}{
		"same results":        {found: kept["alpha"], out: "alpha 2.0, pinned 1.0: same results\n"},
		"a promise is broken": {found: results("a broken exit code 1\nand more", "b broken", "c known", "d unsupported"), out: "alpha 2.0, pinned 1.0: 1 changed\n  a: broken, was kept: exit code 1\n    and more\n", fail: "alpha breaks 1 more of the promises: a"},
		"a new check fails":   {found: append(results("e broken boom"), kept["alpha"]...), out: "alpha 2.0, pinned 1.0: 1 changed\n  e: broken, was unchecked: boom\n", fail: "alpha breaks 1 more of the promises: e"},
		"more is kept":        {found: results("a kept", "b kept", "c kept", "d kept"), out: "alpha 2.0, pinned 1.0: 3 changed\n  b: kept, was broken\n  c: kept, was known\n  d: kept, was unsupported\n"},
		"a check is gone":     {found: kept["alpha"][1:], out: "alpha 2.0, pinned 1.0: 1 changed\n  a: not checked, was kept\n"},
		"no executable":       {out: "alpha: cannot be verified: its package has no executable; PATH has /usr/bin/alpha\n", fail: "alpha cannot be verified"},
		"others continue":     {table: "alpha gone 1.0\nbeta gone 1.0\nalpha @x/alpha 1.0\n", found: kept["alpha"], out: "alpha: cannot be installed: no such package\nbeta: cannot be verified, because it has no target\nalpha 2.0, pinned 1.0: same results\n", fail: "alpha cannot be installed"},
		"of the canary alone": {table: "alpha @x/alpha 1.0 canary\n", found: kept["alpha"], out: "alpha 2.0, pinned 1.0: same results\n"},
		"an unknown mark":     {table: "alpha @x/alpha 1.0 later\n", fail: `"alpha @x/alpha 1.0 later" is not a runtime, a package and a version`},
		"a malformed table":   {table: "alpha 1.0\n", fail: `"alpha 1.0" is not a runtime, a package and a version`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.table == "" {
				test.table = table
			}
			out, err := play(t, test.table, kept, map[string][]verify.Result{"alpha": test.found})
			if out != test.out {
				t.Errorf("it prints\n%s, want\n%s", out, test.out)
			}
			if (err == nil) != (test.fail == "") || err != nil && !strings.HasSuffix(err.Error(), test.fail) {
				t.Errorf("error %v, want %q", err, test.fail)
			}
		})
	}
}

func TestInstallGetsTheNewestVersion(t *testing.T) {
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "npm")); err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	said := filepath.Join(dir, "said")
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv(npmVariable, said)
	into := filepath.Join(dir, "alpha")
	if err := install(t.Context(), into, "@x/alpha"); err != nil {
		t.Fatal(err)
	}
	arguments, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Split(string(arguments), "\n"), " "); !strings.HasPrefix(got, "install --prefix "+into+" ") || !strings.HasSuffix(got, " @x/alpha@latest") {
		t.Errorf("npm gets %q", got)
	}
	t.Setenv(npmVariable+"_FAILS", "1")
	if err := install(t.Context(), into, "@x/alpha"); err == nil {
		t.Error("a failure of npm is not reported")
	}
}

// Each pinned version is the one that the runtime says it was tested with.
func TestPinsAreTheTestedVersions(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../scripts/agents.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pins, err := readPins(file)
	if err != nil || len(pins) == 0 {
		t.Fatalf("%d rows, %v", len(pins), err)
	}
	for _, p := range pins {
		if rt, ok := registry.Default().Lookup(p.runtime); !ok || rt.TestedVersion != p.version {
			t.Errorf("%s: %s is pinned, %s was tested", p.runtime, p.version, rt.TestedVersion)
		}
	}
}
