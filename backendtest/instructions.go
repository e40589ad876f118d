package backendtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

var takesInstructions = func(h *Harness) bool { return h.Runtime.Instructions != nil }

var instructionRules = []rule{
	{name: "instructions", test: instructionsOnce, applies: takesInstructions,
		text: "Each AGENTS.md from the root of the repository down to the workdir reaches the model exactly once, the root first: as text, or because the CLI that finds them itself runs in the workdir."},
	{name: "instructions-limit", test: instructionsLimit, applies: takesInstructions,
		text: "AGENTS.md beyond the limit is cut with a warning, the closest kept, and refused where it is required whole."},
	{name: "instructions-none", test: instructionsNone,
		text: "Without AGENTS.md a run just starts, and is refused as a usage error where AGENTS.md is required; so it is by a runtime that takes none."},
}

const (
	rootRule = "backendtest-rule-of-the-root-51"
	subRule  = "backendtest-rule-of-the-directory-27"
)

func instructionsOnce(w *world) {
	sub := filepath.Join(w.work, "pkg", "deep")
	w.write(filepath.Join(w.work, "AGENTS.md"), "# Rules\n"+rootRule+"\n")
	w.write(filepath.Join(sub, "AGENTS.md"), subRule) // without a line break
	for _, token := range w.tokens() {
		for _, c := range []struct {
			dir   string
			trust bool
			rules []string
		}{
			{w.work, false, []string{rootRule}},
			{sub, false, []string{rootRule, subRule}},
			{filepath.Join(w.work, "pkg"), false, []string{rootRule}},
			{sub, true, []string{rootRule, subRule}},
		} {
			req := w.request()
			req.Runtime, req.Workdir, req.TrustWorkspace, req.RequireInstructions = token, c.dir, c.trust, true
			where := fmt.Sprintf("%s in %s with trust %v", token, w.rel(c.dir), c.trust)
			before := w.snapshot(w.work)
			seen := w.started(req).seen
			if seen.Dir != c.dir {
				w.failf("%s ran in %s", where, seen.Dir)
			}
			w.delivered(where, seen, before, c.rules)
		}
	}
}

// rel returns the path of a file from the root of the world.
func (w *world) rel(name string) string {
	if rel, err := filepath.Rel(w.root, name); err == nil {
		return rel
	}
	return name
}

// delivered checks that the rules reach the model once and in order.
func (w *world) delivered(where string, seen *Invocation, before snapshot, rules []string) {
	if w.NativeInstructions {
		for _, rule := range rules {
			if n := strings.Count(strings.Join(w.texts(seen, before), "\x00"), rule); n > 0 {
				w.failf("%s: the CLI finds AGENTS.md itself, and it was delivered as well", where)
			}
		}
		return
	}
	at := map[string]int{}
	all := strings.Join(w.texts(seen, before), "\x00")
	for _, rule := range rules {
		if n := strings.Count(all, rule); n != 1 {
			w.failf("%s: %q was delivered %d times", where, rule, n)
		}
		at[rule] = strings.Index(all, rule)
	}
	if !slices.IsSortedFunc(rules, func(a, b string) int { return at[a] - at[b] }) {
		w.failf("%s: the root's AGENTS.md was not delivered first", where)
	}
}

// texts returns everything that the CLI can read and that was not there before.
func (w *world) texts(seen *Invocation, before snapshot) []string {
	list := append(slices.Concat(seen.Args, seen.Env), string(seen.Stdin))
	for _, text := range seen.Descriptors {
		list = append(list, string(text))
	}
	for name, text := range seen.Files {
		if _, was := before[name]; !was {
			list = append(list, string(text))
		}
	}
	slices.Sort(list)
	return list
}

func instructionsLimit(w *world) {
	limit := w.Runtime.Instructions.MaxBytes
	if limit <= 0 {
		w.fatalf("Instructions.MaxBytes is %d", limit)
	}
	sub := filepath.Join(w.work, "pkg")
	line := "a rule of many words that is in a long file of instructions\n"
	w.write(filepath.Join(w.work, "AGENTS.md"), strings.Repeat(line, limit/len(line)+1)+rootRule+"\n")
	w.write(filepath.Join(sub, "AGENTS.md"), subRule+"\n")
	req := w.request()
	req.Workdir = sub
	before := w.snapshot(w.work)
	o := w.started(req)
	if len(o.warnings) == 0 {
		w.failf("there is no warning")
	}
	all := strings.Join(w.texts(o.seen, before), "\x00")
	if n := strings.Count(all, subRule); n != 1 && !(n == 0 && w.NativeInstructions) {
		w.failf("the closest AGENTS.md was delivered %d times", n)
	}
	if strings.Count(all, line)*len(line) > limit {
		w.failf("more than %d bytes were delivered", limit)
	}
	req.RequireInstructions = true
	if o := w.run(req); !errors.Is(o.err, agent.ErrUsage) || o.seen != nil {
		w.failf("where it is required whole the run gives %v", o.err)
	}
}

func instructionsNone(w *world) {
	o := w.started(w.request())
	if len(o.warnings) > 0 {
		w.failf("it warns: %s", o.warnings[0])
	}
	req := w.request()
	req.RequireInstructions = true
	if o := w.run(req); !errors.Is(o.err, agent.ErrUsage) || o.seen != nil {
		w.failf("where AGENTS.md is required and there is none the run gives %v", o.err)
	}
	if w.Runtime.Instructions != nil {
		return
	}
	w.must(os.WriteFile(filepath.Join(w.work, "AGENTS.md"), []byte("rules\n"), 0o644))
	if o := w.run(req); !errors.Is(o.err, agent.ErrUsage) || o.seen != nil {
		w.failf("where AGENTS.md is required and the runtime takes none the run gives %v", o.err)
	}
}
