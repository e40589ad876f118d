//go:build release

package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"
)

const fakeProgram = "BUS_AGENT_TEST_FAKE"

func TestMain(m *testing.M) {
	if os.Getenv(fakeProgram) == "" {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "echo": // the arguments and standard input
		fmt.Println(strings.Join(os.Args[1:], "|"))
		io.Copy(os.Stdout, os.Stdin)
		fmt.Fprint(os.Stderr, "error")
		os.Exit(7)
	case "catch": // a signal
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
		fmt.Println("ready")
		fmt.Println(<-caught)
		os.Exit(5)
	default: // end by a signal
		signal.Reset()
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		select {}
	}
}

// nodes are the versions of Node.js to test the launcher with: that of this machine, and
// the one in BUS_AGENT_NODE.
func nodes() []string {
	if newest := os.Getenv("BUS_AGENT_NODE"); newest != "" {
		return []string{"node", newest}
	}
	return []string{"node"}
}

// launched returns a command that starts the test binary as the launcher of npm starts
// the program of the platform.
func launched(t *testing.T, node string, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "node_modules", npmName(here), "bin", "bus-agent")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := []byte("require('./launch.js')('bus-agent');\n")
	for _, err := range []error{
		os.Symlink(test, program),
		os.WriteFile(filepath.Join(dir, "launch.js"), launcher, 0o644),
		os.WriteFile(filepath.Join(dir, "start.js"), start, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), node, append([]string{"start.js"}, args...)...)
	c.Dir, c.Env = dir, append(os.Environ(), fakeProgram+"=1")
	return c
}

func TestLauncherPassesArgumentsStreamsAndExitCode(t *testing.T) {
	t.Parallel()
	for _, node := range nodes() {
		c := launched(t, node, "echo", "two words", "", "--flag=*")
		var stderr strings.Builder
		c.Stdin, c.Stderr = strings.NewReader("input"), &stderr
		out, err := c.Output()
		if string(out) != "echo|two words||--flag=*\ninput" || stderr.String() != "error" || c.ProcessState.ExitCode() != 7 {
			t.Errorf("%s: output %q, errors %q, %v", node, out, stderr.String(), err)
		}
	}
}

func TestLauncherPassesSignals(t *testing.T) {
	t.Parallel()
	for i, node := range nodes() {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			for _, mode := range []string{"catch", "end"} {
				if mode == "end" && sig == syscall.SIGQUIT {
					continue // Go catches it
				}
				t.Run(mode+" "+sig.String()+" "+[]string{"with this node", "with the newest"}[i], func(t *testing.T) {
					t.Parallel()
					checkSignal(t, launched(t, node, mode), mode, sig)
				})
			}
		}
	}
}

// checkSignal sends a signal to the launcher c of a program that catches it, or else ends.
func checkSignal(t *testing.T, c *exec.Cmd, mode string, sig syscall.Signal) {
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := c.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out) // until both processes have ended
	_ = c.Wait()
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	if mode == "catch" && (string(rest) != sig.String()+"\n" || status.ExitStatus() != 5) {
		t.Errorf("the program prints %q; %v", rest, c.ProcessState)
	}
	if mode == "end" && (!status.Signaled() || status.Signal() != sig) {
		t.Errorf("the launcher: %v", c.ProcessState)
	}
}

func TestLauncherNamesTheMissingPackage(t *testing.T) {
	t.Parallel()
	c := launched(t, "node", "echo")
	if err := os.RemoveAll(filepath.Join(c.Dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	out, _ := c.CombinedOutput()
	if want := "package " + npmName(here) + " is not installed"; !strings.Contains(string(out), want) || c.ProcessState.ExitCode() != 1 {
		t.Errorf("%v, %s", c.ProcessState, out)
	}
}

// checkNPM publishes the packages as the workflow does, and installs bus-agent with npx.
func checkNPM(t *testing.T, a artifacts) {
	registry := &npmRegistry{packages: map[string]map[string]any{}, files: map[string][]byte{}}
	server := httptest.NewServer(registry)
	defer server.Close()
	dir, home := t.TempDir(), t.TempDir()
	login := "//" + server.Listener.Addr().String() + "/:_authToken=any\n"
	if err := os.WriteFile(filepath.Join(home, "npmrc"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"HOME=" + home, "npm_config_registry=" + server.URL, "npm_config_cache=" + filepath.Join(home, "cache"),
		"npm_config_userconfig=" + filepath.Join(home, "npmrc"), "npm_config_globalconfig=" + filepath.Join(home, "global"),
		"npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false",
	}
	for range 2 { // the second time all of them are published
		command(t, a.dir, append(slices.Clone(environ), "TAG="+a.version), "bash", "-e", "-c", publishStep(t))
	}
	registry.mu.Lock()
	published, document := registry.published, registry.packages["bus-agent"]
	registry.mu.Unlock()
	if want := len(a.platforms) + 1; len(published) != want || published[want-1] != "bus-agent" {
		t.Fatalf("published: %q", published)
	}
	tag := "latest"
	if strings.Contains(a.version, "-") {
		tag = "next"
	}
	if tags := document["dist-tags"].(map[string]any); tags[tag] != strings.TrimPrefix(a.version, "v") {
		t.Errorf("tags of bus-agent: %v", tags)
	}
	for _, program := range []string{"bus-agent", "bus-agent-mcp"} {
		out := command(t, t.TempDir(), environ, "npx", "--yes", "--package=bus-agent@"+tag, program, "--version")
		if !strings.Contains(out, a.version) {
			t.Errorf("npx %s --version prints %q", program, out)
		}
	}
	command(t, dir, environ, "npm", "install", "bus-agent@"+tag)
	if found, err := filepath.Glob(filepath.Join(dir, "node_modules", "@busdk", "*")); err != nil || len(found) != 1 || filepath.Base(found[0]) != strings.TrimPrefix(npmName(here), "@busdk/") {
		t.Errorf("npm installs the programs %q, %v", found, err)
	}
	checkAnswer(t, filepath.Join(dir, "node_modules", ".bin", "bus-agent"))

	// A fix of an older version does not replace a newer one.
	registry.mu.Lock()
	document["dist-tags"] = map[string]any{"latest": "9.0.0"}
	document["versions"] = map[string]any{"9.0.0": map[string]any{"name": "bus-agent", "version": "9.0.0"}}
	registry.mu.Unlock()
	command(t, a.dir, append(slices.Clone(environ), "TAG=v1.2.3"), "bash", "-e", "-c", publishStep(t))
	registry.mu.Lock()
	tags := registry.packages["bus-agent"]["dist-tags"].(map[string]any)
	registry.mu.Unlock()
	if tags["latest"] != "9.0.0" || tags["release-1.2"] != strings.TrimPrefix(a.version, "v") {
		t.Errorf("tags of bus-agent after a fix of 1.2: %v", tags)
	}
}

// The step takes only an answer that a package does not exist for one, and a version for
// newer than its prereleases.
func TestPublishStep(t *testing.T) {
	t.Parallel()
	const missing = "npm error code E404"
	for name, c := range map[string]struct {
		tag            string
		newest         string // what npm shows, unless the version is missing or failure is set
		failure        string // of npm view
		want, mustFail string
	}{
		"nothing published":         {tag: "v1.2.3", failure: missing, want: "latest"},
		"an older version":          {tag: "v1.10.0", newest: "1.9.0", want: "latest"},
		"a newer version":           {tag: "v1.2.3", newest: "1.3.0", want: "release-1.2"},
		"its prerelease":            {tag: "v1.2.3", newest: "1.2.3-rc.1", want: "latest"},
		"a later prerelease":        {tag: "v1.2.3", newest: "1.3.0-rc.1", want: "release-1.2"},
		"a prerelease":              {tag: "v1.2.3-rc.1", newest: "1.2.2", want: "next"},
		"a registry out of service": {tag: "v1.2.3", failure: "npm error code E503", mustFail: "E503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fake := `#!/bin/sh
case "$1 $2" in
"publish "*) echo "$*" >>published ;;
"view bus-agent") [ -z "$FAILURE" ] || { echo "$FAILURE" >&2; exit 1; }; echo "$NEWEST" ;;
*) echo "` + missing + `" >&2; exit 1 ;;
esac
`
			for file, text := range map[string]string{"npm": fake, "package/package.json": `{"name":"x","version":"1.2.3"}`} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, archive := range []string{"busdk-x.tgz", "bus-agent-1.tgz"} {
				command(t, dir, nil, "tar", "-czf", archive, "package")
			}
			step := exec.Command("bash", "-e", "-c", publishStep(t))
			step.Dir = dir
			step.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TAG="+c.tag, "NEWEST="+c.newest, "FAILURE="+c.failure)
			out, err := step.CombinedOutput()
			published, _ := os.ReadFile(filepath.Join(dir, "published"))
			if c.mustFail != "" {
				if err == nil || !strings.Contains(string(out), c.mustFail) || len(published) > 0 {
					t.Errorf("%v: %s, published %s", err, out, published)
				}
				return
			}
			if err != nil || strings.Count(string(published), "--tag "+c.want+"\n") != 2 {
				t.Errorf("%v: %s, published %s", err, out, published)
			}
		})
	}
}

// publishStep returns what the workflow runs to publish the packages.
func publishStep(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../.github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	for _, step := range workflow.Jobs["npm"].Steps {
		if strings.Contains(step.Run, "npm publish") {
			return step.Run
		}
	}
	t.Fatal("no step publishes packages")
	return ""
}

// npmRegistry is a registry of npm.
type npmRegistry struct {
	mu        sync.Mutex
	packages  map[string]map[string]any // their documents, by name
	files     map[string][]byte         // by path
	published []string                  // names, in order
}

func (r *npmRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strings.TrimPrefix(q.URL.Path, "/")
	switch document := r.packages[name]; {
	case q.Method == http.MethodPut:
		var sent map[string]any
		if err := json.NewDecoder(q.Body).Decode(&sent); err != nil {
			http.Error(w, fmt.Sprint(err), http.StatusConflict)
			return
		}
		for file, a := range sent["_attachments"].(map[string]any) {
			data, err := base64.StdEncoding.DecodeString(a.(map[string]any)["data"].(string))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.files[name+"/-/"+file] = data
		}
		delete(sent, "_attachments")
		for _, member := range []string{"versions", "dist-tags"} {
			for key, value := range sent[member].(map[string]any) {
				before, _ := document[member].(map[string]any)
				if member == "versions" && before[key] != nil {
					http.Error(w, "it is published", http.StatusConflict)
					return
				}
				if before != nil {
					before[key] = value
					sent[member] = before
				}
			}
		}
		r.packages[name], r.published = sent, append(r.published, name)
		fmt.Fprint(w, "{}")
	case document != nil:
		json.NewEncoder(w).Encode(document)
	case r.files[name] != nil:
		w.Write(r.files[name])
	default:
		http.Error(w, "{}", http.StatusNotFound)
	}
}
