package backendtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/registry"
)

// A rule is one case of the suite.
type rule struct {
	name string
	text string // what has to hold, a sentence
	// applies reports whether the runtime claims what the rule is about; nil is
	// always.
	applies func(*Harness) bool
	// spoken rules need the lines of the CLI.
	spoken bool
	test   func(*world)
}

// rules lists the cases in the order of their reports.
func rules() []rule {
	return slices.Concat(descriptorRules, commandRules, promptRules, optionRules, instructionRules,
		workdirRules, sessionRules, decoderRules, outputRules, endRules, hostileRules)
}

// A Failure is a rule that a runtime broke.
type Failure struct {
	Case    string // its name
	Rule    string // what has to hold
	Problem string // what did not
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s Broken: %s", f.Case, f.Rule, f.Problem)
}

// Run tests that the runtime of h does what every caller of a runtime relies on,
// one parallel subtest a rule. The test binary has to call [Main] in TestMain.
func Run(t *testing.T, h Harness) {
	t.Helper()
	run(t, h, rules())
}

func run(t *testing.T, h Harness, rules []rule) {
	t.Helper()
	if missing := h.incomplete(); len(missing) > 0 {
		t.Fatalf("the harness lacks %v", missing)
	}
	for _, r := range rules {
		if r.applies != nil && !r.applies(&h) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range r.check(t.Context(), &h) {
				t.Error(f)
			}
		})
	}
}

// Check tests rt in a temporary directory, by the rules that need neither sample
// lines of its CLI nor the place where it reads the prompt. It returns nil or the
// joined failures, each a [*Failure]. The program must call PlayAgent first.
func Check(rt registry.Runtime) error {
	return check(Harness{Runtime: rt})
}

// Attack tests the rules of [Check] that are about hostile repositories and hostile
// agents.
func Attack(rt registry.Runtime) error {
	var names []string
	for _, r := range hostileRules {
		names = append(names, r.name)
	}
	return check(Harness{Runtime: rt}, names...)
}

// check tests what the harness allows. names choose rules; none are all.
func check(h Harness, names ...string) error {
	spoken := h.Lines.Text != ""
	chosen := map[string]bool{}
	for _, name := range names {
		chosen[name] = true
	}
	var run []rule
	for _, r := range rules() {
		if (len(chosen) == 0 || chosen[r.name]) && (spoken || !r.spoken) && (r.applies == nil || r.applies(&h)) {
			run = append(run, r)
		}
	}
	found := make([][]error, len(run))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i, r := range run {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for _, f := range r.check(context.Background(), &h) {
				found[i] = append(found[i], f)
			}
		})
	}
	wg.Wait()
	var all []error
	for _, list := range found {
		all = append(all, list...)
	}
	return errors.Join(all...)
}

// caseTime bounds one case. Nothing in it comes near, unless it hangs.
const caseTime = 3 * time.Minute

// check applies the rule to the runtime in a new world.
func (r rule) check(ctx context.Context, h *Harness) []*Failure {
	ctx, cancel := context.WithTimeout(ctx, caseTime)
	defer cancel()
	w, err := newWorld(ctx, h)
	if err != nil {
		return []*Failure{{r.name, r.text, "the test could not be set up: " + err.Error()}}
	}
	defer w.remove()
	func() {
		defer func() {
			if p := recover(); p != nil && p != errGiveUp {
				w.failf("panic: %v", p)
			}
		}()
		r.test(w)
	}()
	var failures []*Failure
	for _, problem := range w.problems {
		failures = append(failures, &Failure{r.name, r.text, problem})
	}
	return failures
}

// errGiveUp is how a case ends early.
var errGiveUp = errors.New("the case was given up")

// tempDir makes a directory without symlinks in its path.
func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "backendtest-")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
