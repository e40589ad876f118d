//go:build release

package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

var (
	snapshot = flag.String("snapshot", "", "test what -artifacts made in this folder, not new artifacts for this platform")
	version  = flag.String("version", "v0.9.1", "the version of the artifacts")
)

// artifacts are in a folder that makeArtifacts has filled.
type artifacts struct {
	release
	dir       string
	platforms []platform
}

func makeArtifacts(t *testing.T) artifacts {
	t.Helper()
	a := artifacts{platforms: []platform{here}, release: release{root: "../..", out: *snapshot, version: *version, preferences: *version}}
	if a.out != "" {
		a.platforms = platforms
	} else {
		a.out = filepath.Join(t.TempDir(), "out")
		a.remake(t)
	}
	a.dir = filepath.Join(a.out, "artifacts")
	return a
}

// remake makes the artifacts in a.out.
func (a artifacts) remake(t *testing.T) {
	t.Helper()
	if err := a.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.makeArtifacts(t.Context(), a.platforms); err != nil {
		t.Fatal(err)
	}
}

// name returns the name of the archive of a product without its extension.
func (a artifacts) name(product string, p platform) string {
	return product + "_" + strings.TrimPrefix(a.version, "v") + "_" + p.String()
}

// What users download is complete, works, and can be made again by others.
func TestArtifacts(t *testing.T) {
	a := makeArtifacts(t)
	t.Run("the checksums are right", func(t *testing.T) {
		sums, err := os.ReadFile(filepath.Join(a.dir, "checksums.txt"))
		if err != nil {
			t.Fatal(err)
		}
		command(t, a.dir, nil, "sha256sum", "--check", "--strict", "--quiet", "checksums.txt")
		if entries, err := os.ReadDir(a.dir); err != nil || bytes.Count(sums, []byte("\n")) != len(entries)-1 {
			t.Errorf("%d files, %v; the checksums are\n%s", len(entries), err, sums)
		}
	})
	for _, p := range products {
		t.Run("formula of "+p.name, func(t *testing.T) { checkFormula(t, a, p) })
		for _, on := range a.platforms {
			t.Run(p.name+" for "+on.String(), func(t *testing.T) {
				prefix := t.TempDir()
				command(t, prefix, nil, "tar", "-xzf", filepath.Join(a.dir, a.name(p.name, on)+".tar.gz"), "--strip-components=1")
				checkInstalled(t, prefix, p, on, a.version)
				checkSBOM(t, a, p, on)
				if on.OS == "linux" {
					checkPackages(t, a, p, on)
				}
			})
		}
	}
	t.Run("npm", func(t *testing.T) { checkNPM(t, a) })
	t.Run("others make the same bytes", func(t *testing.T) {
		if *snapshot != "" { // it takes minutes
			t.Setenv("GOCACHE", filepath.Join(t.TempDir(), "cache"))
		}
		again := a
		again.out = filepath.Join(t.TempDir(), "elsewhere")
		again.remake(t)
		for _, name := range list(t, a.dir) {
			first, err := os.ReadFile(filepath.Join(a.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			second, err := os.ReadFile(filepath.Join(again.out, "artifacts", name))
			if err != nil || !bytes.Equal(first, second) {
				t.Errorf("%s differs, %v", name, err)
			}
		}
	})
}

// checkInstalled checks what is installed of a product below prefix.
func checkInstalled(t *testing.T, prefix string, p product, on platform, version string) {
	t.Helper()
	want := []string{"share/doc/" + p.name + "/CHANGELOG.md"}
	if p.name == mainProduct {
		want = append(want, "share/doc/bus-agent/README.md", "share/doc/bus-agent/docs/cli.md", "share/man/man1/bus-agent.1",
			"share/bash-completion/completions/bus-agent", "share/fish/vendor_completions.d/bus-agent.fish")
	}
	for _, name := range want {
		if info, err := os.Stat(filepath.Join(prefix, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if found, err := filepath.Glob(filepath.Join(prefix, "share/zsh/*/_bus-agent")); err != nil || p.name == mainProduct && len(found) != 1 {
		t.Errorf("completions of zsh: %q, %v", found, err)
	}
	for _, path := range p.programs {
		program := filepath.Join(prefix, "bin", programName(path))
		checkProgram(t, program, on, version)
		if on == here {
			checkRuns(t, program, version)
		}
	}
	if p.name == mainProduct && on == here {
		checkAnswer(t, filepath.Join(prefix, "bin", "bus-agent"))
	}
}

// checkProgram checks that a program is static, stripped, for the platform and of the
// version.
func checkProgram(t *testing.T, program string, on platform, version string) {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	for key, want := range map[string]string{"GOOS": on.OS, "GOARCH": on.Arch, "CGO_ENABLED": "0", "-trimpath": "true"} {
		if set[key] != want {
			t.Errorf("%s is built with %s=%s, want %s", program, key, set[key], want)
		}
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if strings.HasPrefix(m.Path, "github.com/busdk/") && m.Version != version {
			t.Errorf("%s has %s %s, want %s", program, m.Path, m.Version, version)
		}
	}
	if on.OS == "darwin" {
		f, err := macho.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Section("__debug_info") != nil || f.Section("__zdebug_info") != nil {
			t.Errorf("%s has debug information", program)
		}
		return
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Section(".interp") != nil || f.Section(".symtab") != nil || f.Section(".debug_info") != nil {
		t.Errorf("%s is not static and stripped", program)
	}
}

// checkRuns checks that a program starts and prints its version.
func checkRuns(t *testing.T, program, version string) {
	t.Helper()
	out := command(t, t.TempDir(), []string{"HOME=" + t.TempDir()}, program, "--version")
	if !strings.Contains(out, version) {
		t.Errorf("%s --version prints %q", program, out)
	}
}

// checkAnswer checks that a program shows the answer of an agent.
func checkAnswer(t *testing.T, program string, args ...string) {
	t.Helper()
	bin := t.TempDir()
	const agent = `#!/bin/sh
[ "$1" != --version ] || { echo codex-cli 0.171.0; exit; }
echo '{"type":"thread.started","thread_id":"1"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"forty-two"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
`
	if err := os.WriteFile(filepath.Join(bin, "codex"), []byte(agent), 0o755); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=" + t.TempDir(), "PATH=" + bin + ":" + os.Getenv("PATH")}
	out := command(t, t.TempDir(), environ, program, append(args, "run", "--agent", "codex", "--text", "6 x 7?")...)
	if out != "forty-two\n" {
		t.Errorf("the answer is %q", out)
	}
}

// command runs a program in dir, with more variables, and returns its standard output.
func command(t *testing.T, dir string, environ []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	var stderr strings.Builder
	c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), environ...), &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// list returns the names of the files in dir.
func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%s has %d files, %v", dir, len(entries), err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
