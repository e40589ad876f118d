// Package policy answers the approval requests of a session by rules, so that the user is
// asked only about the rest:
//
//	{
//	  "rules": [
//	    {"command": ["go", "test"], "decision": "accept"},
//	    {"command": ["git", "push"], "decision": "decline"},
//	    {"kind": "edit", "path": "/srv/notes/", "decision": "accept"},
//	    {"path": "**/.env", "decision": "decline"}
//	  ],
//	  "default": "ask"
//	}
//
// Set session.Options.Policy, or control.Settings.Policy, to a [Policy]. It decides the
// requests that remain once the engine has accepted what the access of the session
// includes, such as edits in the workdir with write access.
//
// # Which rule decides
//
// A request is a list of parts: the files that a tool names, the simple commands of a
// command line, or else the whole request. For each part the most specific rule that
// matches decides: first by what it names (a file, then a folder or the beginning of a
// command, then a pattern, then neither), then by the length of the folder or command,
// then a rule with a kind before one without. Of equal rules, decline wins over ask, and
// ask over accept. If no rule matches, the default decides. The request is declined if
// any part is, and accepted only if every part is.
//
// # What accept rules match
//
// Only what is known completely. A command line matches none if it has anything besides
// words, quoted texts and the operators && || ; | between simple commands: no expansion,
// redirection, substitution, assignment, comment or pattern. A file matches none if it is
// unknown where its name leads, or, for an edit, if engine.Start.Locate does not report
// it as plain. Links are followed in the names that the agent writes and never in those
// of a rule, which names a place without links. A request without a known
// [agent.ToolKind] matches none either, as in a terminal of tmux.
//
// # What decline and ask rules match
//
// As much as possible: names of files in any case, as they are written and where they
// lead; a command by its base name too, after programs such as sudo and env, and anywhere
// in a line that cannot be read. They stop an agent that does not try to get around them,
// since a program has many names. Accept what is needed and leave the default at ask.
package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/session/engine"
)

// A Decision is what a rule does with a request.
type Decision string

// The decisions.
const (
	Accept  Decision = "accept"  // once; the agent asks again for the next
	Ask     Decision = "ask"     // the user
	Decline Decision = "decline" // the turn continues without it
)

// Limits of a policy.
const (
	MaxSize  = 256 << 10 // of its JSON, in bytes
	MaxRules = 1000
)

// A Policy is a list of rules. It is not changed after its first use; then its methods may
// be called concurrently. The zero value asks the user about everything.
type Policy struct {
	Rules []Rule `json:"rules,omitempty"`
	// Default decides requests that no rule matches: Ask, which the empty value means,
	// or Decline.
	Default Decision `json:"default,omitempty"`

	file string // that Load has read, absolute
}

// A Rule decides the requests that match all of what it names.
type Rule struct {
	// Kind is what the tool does. Empty means any. An accept rule has a kind or a
	// command.
	Kind agent.ToolKind `json:"kind,omitempty"`

	// Path is for tools that read, edit or delete files. It is relative to the workdir
	// or absolute, without links, and separated by slashes: a file; a folder with
	// everything in it, which ends in "/"; or a pattern with the elements of
	// [path.Match] and with ** for any number of elements.
	Path string `json:"path,omitempty"`

	// Command is the beginning of the words of a command.
	Command []string `json:"command,omitempty"`

	Decision Decision `json:"decision"`
}

// Parse reads a policy from JSON. It refuses unknown and repeated members. An error is of
// kind agent.ErrUsage.
func Parse(text []byte) (*Policy, error) {
	if len(text) > MaxSize {
		return nil, agent.Usagef("policy: larger than %d KiB", MaxSize>>10)
	}
	var p *Policy
	if err := decode(text, &p); err != nil {
		return nil, agent.Usagef("policy: %w", err)
	}
	return p, p.Check()
}

func decode(text []byte, p **Policy) error {
	if err := jsonline.Decode(text, p); err != nil {
		return err
	}
	if err := jsonline.CheckNames(text, isMember); err != nil {
		return err
	}
	if *p == nil {
		return errors.New("it is null, not an object")
	}
	return nil
}

// isMember refuses a name in another case, which package json accepts.
func isMember(name string) error {
	if name != strings.ToLower(name) {
		return fmt.Errorf("unknown field %q", name)
	}
	return nil
}

// Check returns why a policy cannot be used. The error is of kind agent.ErrUsage.
func (p *Policy) Check() error {
	if p.Default != "" && p.Default != Ask && p.Default != Decline {
		return agent.Usagef("policy: the default is %q; use ask or decline", p.Default)
	}
	if len(p.Rules) > MaxRules {
		return agent.Usagef("policy: %d rules; the limit is %d", len(p.Rules), MaxRules)
	}
	for i, r := range p.Rules {
		if err := r.check(); err != nil {
			return agent.Usagef("policy: rule %d: %w", i+1, err)
		}
	}
	return nil
}

func (r *Rule) check() error {
	files := r.Kind == "" || r.Kind == agent.ToolRead || r.Kind == agent.ToolEdit || r.Kind == agent.ToolDelete
	switch {
	case r.Decision != Accept && r.Decision != Ask && r.Decision != Decline:
		return fmt.Errorf("the decision is %q; use accept, ask or decline", r.Decision)
	case r.Kind != "" && !slices.Contains(agent.ToolKinds(), r.Kind):
		return fmt.Errorf("%q is not a kind; use read, edit, delete, execute, fetch or other", r.Kind)
	case r.Path != "" && r.Command != nil:
		return fmt.Errorf("it has a path and a command; make two rules")
	case r.Path != "" && !files:
		return fmt.Errorf("a path is for tools that read, edit or delete, not for %s", r.Kind)
	case r.Command != nil && r.Kind != "" && r.Kind != agent.ToolExecute:
		return fmt.Errorf("a command is for tools that execute, not for %s", r.Kind)
	case r.Command != nil && (len(r.Command) == 0 || slices.Contains(r.Command, "")):
		return fmt.Errorf("the command has an empty word")
	case r.Decision == Accept && r.Kind == "" && r.Command == nil:
		return fmt.Errorf("it accepts without a kind; name one")
	case r.Path != "":
		return checkPath(r.Path)
	}
	return nil
}

// Decide returns how to answer a request for a tool, nil if the agent does not name it, in
// a session that was started with start. It reads where links lead and changes nothing.
func (p *Policy) Decide(tool *agent.Tool, start engine.Start) agent.PolicyAnswer {
	if p == nil {
		return agent.PolicyAnswer{Decision: string(Ask)}
	}
	j := judge{policy: p, start: start, base: realDir(start.Workdir)}
	if tool != nil {
		j.kind = tool.Kind
	}
	var worst verdict
	for i, part := range j.parts(tool) {
		if v := j.decide(part); i == 0 || strictness(v.decision) > strictness(worst.decision) {
			worst = v
		}
	}
	return agent.PolicyAnswer{Decision: string(worst.decision), Rule: worst.rule}
}

// strictness orders decisions: of two, the stricter one wins.
func strictness(d Decision) int { return slices.Index([]Decision{Accept, Ask, Decline}, d) }

// judge decides one request.
type judge struct {
	policy *Policy
	start  engine.Start
	base   string // the workdir without links
	kind   agent.ToolKind
}

// part is a part of a request. A part that is not known completely matches no accept rule.
type part struct {
	known    bool
	file     *file
	argv     []string   // of a simple command
	mentions [][]string // folded commands that decline and ask rules match
}

type verdict struct {
	decision Decision
	rule     int
	rank     rank
}

// rank is how specific a rule is.
type rank struct{ class, length, kind int }

// Classes of rules.
const (
	classAny = iota
	classPattern
	classBeginning
	classFile
)

func (a rank) compare(b rank) int {
	return slices.Compare([]int{a.class, a.length, a.kind}, []int{b.class, b.length, b.kind})
}

// parts returns the parts of a request: at least one.
func (j *judge) parts(tool *agent.Tool) []part {
	switch {
	case tool == nil || j.kind == "":
		return []part{{}}
	case j.kind == agent.ToolExecute:
		return commandParts(tool.Command)
	case j.kind != agent.ToolRead && j.kind != agent.ToolEdit && j.kind != agent.ToolDelete:
		return []part{{known: true}}
	case len(tool.Files) == 0 || len(tool.Files) > maxFiles:
		return []part{{}}
	}
	list := make([]part, len(tool.Files))
	for i, name := range tool.Files {
		f, known := j.locate(name)
		list[i] = part{known: known, file: f}
	}
	return list
}

// decide returns what the most specific rule does with a part.
func (j *judge) decide(p part) verdict {
	best := verdict{decision: Ask}
	if j.policy.Default != "" {
		best.decision = j.policy.Default
	}
	for i := range j.policy.Rules {
		r := &j.policy.Rules[i]
		rank, ok := j.match(r, p)
		if !ok {
			continue
		}
		order := rank.compare(best.rank)
		if best.rule == 0 || order > 0 || order == 0 && strictness(r.Decision) > strictness(best.decision) {
			best = verdict{r.Decision, i + 1, rank}
		}
	}
	return best
}

// match reports whether a rule matches a part, and how specific it is.
func (j *judge) match(r *Rule, p part) (rank, bool) {
	if r.Kind != "" && r.Kind != j.kind || r.Decision == Accept && !p.known {
		return rank{}, false
	}
	var k rank
	if r.Kind != "" {
		k.kind = 1
	}
	switch {
	case r.Command != nil:
		k.class, k.length = classBeginning, len(r.Command)
		if r.Decision == Accept {
			return k, beginsWith(p.argv, r.Command)
		}
		return k, slices.ContainsFunc(p.mentions, func(argv []string) bool { return mentions(argv, r.Command) })
	case r.Path != "":
		place := newPlace(j.base, r.Path)
		k.class, k.length = place.class()
		return k, p.file != nil && j.matchPath(r, place, p.file)
	}
	return k, true
}
