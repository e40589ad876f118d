//go:build slow

package layers

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// published is the version the modules of this tree have in the tests below.
const published = "v0.0.1"

// TestConsumer builds modules outside the tree from this one as a module proxy
// would serve it. Programs that import the registry and the runner alone need
// nothing of bus-preferences; those that import preferences need the one line
// the README shows.
func TestConsumer(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	proxy := t.TempDir()
	publish(t, proxy, module, root)
	publish(t, proxy, module+"/bus-preferences", filepath.Join(root, "bus-preferences"))
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := string(regexp.MustCompile(`(?m)^ *replace .*$`).Find(readme))
	program := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(readme)
	if line == "" || program == nil {
		t.Fatal("the README shows no replace line or no program")
	}
	recipes, err := os.ReadFile(filepath.Join(root, "docs", "recipes.md"))
	if err != nil {
		t.Fatal(err)
	}
	approvals := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(recipes)
	if approvals == nil {
		t.Fatal("the recipes show no program")
	}
	cache := t.TempDir()
	core := "package main\n\nimport (\n\t_ \"" + module + "/backends/all\"\n\t_ \"" + module + "/registry\"\n\t_ \"" + module + "/runner\"\n)\n\nfunc main() {}\n"

	for name, c := range map[string]struct {
		program string
		mod     string
		missing string
		agent   string // that the program runs
		answer  string // of the program, when it is run
	}{
		"registry and runner":        {program: core},
		"the README's program":       {program: string(program[1]), mod: line, agent: "codex", answer: "Hello.\n"},
		"the program of the recipes": {program: string(approvals[1]), agent: "claude", answer: "Bash {\"command\":\"make test\"}? (y/n) Hello.\n"},
		"the same without the line":  {program: string(program[1]), missing: "bus-preferences"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built, out, err := buildConsumer(t, proxy, cache, c.program, c.mod)
			if (err != nil) != (c.missing != "") || !strings.Contains(out, c.missing) {
				t.Errorf("go mod tidy and go build: %v, want what is missing to be %q\n%s", err, c.missing, out)
			}
			if c.answer != "" && err == nil {
				expectAnswer(t, built, c.agent, c.answer)
			}
		})
	}
}

// buildConsumer tidies and builds a module with one program. The module cache is
// filled from the proxy and from the real cache; only what this module's own tests
// would have to download is downloaded here. Without paths in them (-trimpath)
// packages that were built before, by another consumer or an earlier test, are
// in the cache already.
func buildConsumer(t *testing.T, proxy, cache, program, mod string) (built, out string, err error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), program)
	write(t, filepath.Join(dir, "go.mod"), "module example.com/consumer\n\ngo 1.26\n\nrequire "+module+" "+published+"\n\n"+mod+"\n")
	settings, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	real, upstream, _ := strings.Cut(strings.TrimSpace(string(settings)), "\n")
	downloads := filepath.Join(real, "cache", "download")
	env := append(os.Environ(),
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(downloads)+","+upstream,
		"GOMODCACHE="+cache, "GOFLAGS=-modcacherw", "GONOSUMDB=*", "GOSUMDB=off", "GOWORK=off", "GOTOOLCHAIN=local")
	var all strings.Builder
	built = filepath.Join(dir, "consumer")
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-trimpath", "-mod=mod", "-o", built, "."}} {
		c := exec.Command("go", args...)
		c.Dir, c.Env = dir, env
		out, err := c.CombinedOutput()
		all.Write(out)
		if err != nil {
			return "", all.String(), err
		}
	}
	return built, all.String(), nil
}

// agents are a Codex for runs and a Claude Code for sessions.
var agents = map[string]string{
	"codex": `#!/bin/sh
while read -r line; do :; done
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Hello."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
`,
	"claude": `#!/bin/sh
while read -r line; do
	case $line in
	*'"subtype":"initialize"'*)
		id=${line#*'"request_id":"'}
		echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"${id%%\"*}"'","response":{}}}' ;;
	*'"type":"user"'*)
		echo '{"type":"system","subtype":"init","session_id":"s"}'
		echo '{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","tool_use_id":"t","input":{"command":"make test"}}}' ;;
	*'"behavior":"allow"'*)
		echo '{"type":"result","subtype":"success","is_error":false,"result":"Hello.","session_id":"s"}' ;;
	esac
done
`,
}

// expectAnswer runs a program with the only agent there is.
func expectAnswer(t *testing.T, program, agent, want string) {
	t.Helper()
	bin := t.TempDir()
	path := filepath.Join(bin, agent)
	write(t, path, agents[agent])
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program)
	c.Stdin = strings.NewReader("y\n")
	c.Dir, c.Env = t.TempDir(), []string{"PATH=" + bin, "HOME=" + t.TempDir()}
	var stderr strings.Builder
	c.Stderr = &stderr
	if out, err := c.Output(); err != nil || string(out) != want {
		t.Errorf("the program says %q, %v\n%s", out, err, stderr.String())
	}
}

// publish lays out a module below dir as a proxy serves it.
func publish(t *testing.T, proxy, path, dir string) {
	t.Helper()
	versions := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, published)
	write(t, filepath.Join(versions, "list"), published+"\n")
	write(t, filepath.Join(versions, published+".info"), info)
	write(t, filepath.Join(versions, "main.info"), info)
	write(t, filepath.Join(versions, published+".mod"), string(mod))
	file, err := os.Create(filepath.Join(versions, published+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(dir, name, d.Name())
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".s") && rel != "go.mod" {
			return err
		}
		w, err := archive.Create(path + "@" + published + "/" + filepath.ToSlash(rel))
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
