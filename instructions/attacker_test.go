package instructions_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/instructions"
)

// The test binary is also the attacker: another process, which our locks and scheduler
// do not hold up.
const attackDir, attackOutside = "INSTRUCTIONS_TEST_DIR", "INSTRUCTIONS_TEST_OUTSIDE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(attackDir); dir != "" {
		if err := attack(dir, os.Getenv(attackOutside)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// targets are what the attacker swaps: files that are written and all their parents.
// The targets of one list take turns; the lists run at the same time.
var targets = [][]string{
	{".gemini"}, {".codex"}, {".cursor"},
	{".gemini/bus", ".gemini/settings.json", ".codex/bus", ".codex/bus/sessions", ".cursor/rules", ".cursor/rules/busdk-instructions.mdc"},
	{"AGENTS.md", "deep", "deep/AGENTS.md", ".geminiignore"},
}

// attack swaps the targets for links to the outside until its standard input ends. It
// works through a separate root, because it must not follow its links.
func attack(dir, outside string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	var attackers sync.WaitGroup
	for _, list := range targets {
		attackers.Go(func() {
			for swaps := 0; ; swaps++ {
				select {
				case <-done:
					return
				default:
					name := list[swaps%len(list)]
					// Links lead to the same name outside, or to a name that
					// does not exist.
					places := []string{filepath.Join(outside, name), outside, filepath.Join(outside, "empty")}
					swap(root, name, places[rand.N(len(places))])
				}
			}
		})
	}
	fmt.Println("ready")
	_, err = io.ReadAll(os.Stdin)
	close(done)
	attackers.Wait()
	return err
}

// pause lasts for a random time.
func pause() {
	for range rand.N(100) {
		runtime.Gosched()
	}
}

// swap replaces name by a link for a moment.
func swap(root *os.Root, name, to string) {
	_ = root.Rename(name, name+".real")
	_ = root.Symlink(to, name)
	pause()
	if info, err := root.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
		_ = root.Remove(name)
	}
	if root.Rename(name+".real", name) != nil {
		// Another file has taken the name.
		_ = root.RemoveAll(name + ".real")
	}
	pause()
}

// TestHostileProcessTouchesNothingOutside does the same with an attacker in
// another process, for every kind of file a runtime adds.
func TestHostileProcessTouchesNothingOutside(t *testing.T) {
	t.Parallel()
	dir, outside := tempDir(t), tempDir(t)
	write(t, outside, map[string]string{
		"bus/0123456789abcdef/login": "x", "bus/sessions/s": "x", "bus/.gitignore": "*\n", "settings.json": `{"context":{"fileName":["AGENTS.md"]}}`,
		"rules/busdk-instructions.mdc": "x\n", "AGENTS.md": "outside secret\n", "deep/AGENTS.md": "outside secret\n", ".geminiignore": "x\n",
		".gemini/settings.json": "{}", ".gemini/bus/sessions/s": "x", ".codex/bus/0123456789abcdef/login": "x", ".cursor/rules/busdk-instructions.mdc": "x\n", "empty/": "",
	})
	write(t, dir, map[string]string{".git/HEAD": "ref: x", "AGENTS.md": "be brief\n", "deep/AGENTS.md": "be kind\n", ".gemini/settings.json": "{}"})
	before := snapshot(t, outside)

	self, err := os.Executable()
	must(t, err)
	attacker := exec.CommandContext(t.Context(), self)
	attacker.Env = append(os.Environ(), attackDir+"="+dir, attackOutside+"="+outside, "GORACE=atexit_sleep_ms=0")
	stdin, err := attacker.StdinPipe()
	must(t, err)
	stdout, err := attacker.StdoutPipe()
	must(t, err)
	must(t, attacker.Start())
	said := bufio.NewScanner(stdout)
	if !said.Scan() || said.Text() != "ready" {
		t.Fatalf("the attacker says %q", said.Text())
	}

	// Often enough to meet the attacker, and bounded in time for slow machines.
	failed := 0
	for round, begun := 0, time.Now(); round < 40 && time.Since(begun) < 2*time.Second; round++ {
		failed += writeEverything(t, dir)
	}
	must(t, stdin.Close())
	for said.Scan() {
		t.Errorf("the attacker says %q", said.Text())
	}
	must(t, attacker.Wait())
	if failed == 0 {
		t.Error("the attacker never came between")
	}
	if diff := cmp.Diff(before, snapshot(t, outside)); diff != "" {
		t.Error(diff)
	}
}

// writeEverything adds what runtimes add and removes it again. It ignores errors and
// returns their number.
func writeEverything(t *testing.T, dir string) (failed int) {
	count := func(errs ...error) {
		for _, err := range errs {
			if err != nil {
				failed++
			}
		}
	}
	chain, err := instructions.Discover(dir)
	if err != nil {
		return 1
	}
	if text, _, err := chain.Text(0); err != nil || strings.Contains(text, "outside secret") {
		t.Errorf("delivered %q, %v", text, err)
	}
	w, err := instructions.Open(chain, false)
	if err != nil {
		return 1
	}
	defer w.Close()
	for _, parent := range []string{".gemini/bus", ".codex/bus"} {
		h, err := w.NewHome(parent)
		if err != nil {
			failed++
			continue
		}
		count(h.WriteFile("settings.json", []byte("{}"), 0o600), h.Link("/nowhere", "login"), h.Keep("settings.json", "s"), h.CopyIn("s", "again"), h.Remove())
	}
	json := instructions.JSONList{Path: ".gemini/settings.json", Keys: []string{"context", "fileName"}, Value: "AGENTS.md"}
	blocks := []instructions.Block{
		{Path: ".geminiignore", Name: "homes", Comment: instructions.CommentHash, Text: ".gemini/bus\n"},
		{Path: "AGENTS.md", Name: "rule", Comment: instructions.CommentHTML, Text: "ours\n"},
		{Path: ".cursor/rules/busdk-instructions.mdc", Name: "rule", Comment: instructions.CommentHTML, Text: "ours\n"},
	}
	owned := []instructions.Owned{{Home: ".gemini/bus"}, {Home: ".codex/bus"}, {JSON: &json}}
	for _, b := range blocks {
		owned = append(owned, instructions.Owned{Block: &b})
	}
	// The window for the attacker is microseconds long, so there are many writes.
	for range 10 {
		count(w.AddToJSON(json))
		for _, b := range blocks {
			count(w.AddBlock(b))
			_, err := w.ReadFile(b.Path, 1<<10)
			count(err, w.RemoveBlock(b))
		}
		count(w.RemoveFromJSON(json))
	}
	_, err = instructions.Clean(t.Context(), dir, owned)
	count(err)
	return failed
}
