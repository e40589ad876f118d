package closeout

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A step is a simple command of a command line.
type step struct {
	words []string // without assignments, redirections and quotes
	// proven reports that the step ran and exited with 0 if the line did.
	proven bool
}

func (s step) text() string { return strings.Join(s.words, " ") }

// stepsOf returns the simple commands of a command line in order, those of sh -c too.
// What does not parse, and a line that leaves the shell early, has none that is proven. One
// that is longer than MaxCommand has none, as a parser needs memory for each parenthesis,
// and neither has one with more than maxSteps.
func stepsOf(text string) []step {
	if len(text) > MaxCommand {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	w := walker{}
	w.script(file.Stmts, true)
	if len(w.steps) > maxSteps {
		return nil
	}
	return w.steps
}

const (
	maxShells = 3   // sh -c inside sh -c
	maxSteps  = 200 // of a command line
)

type walker struct {
	steps    []step
	pipefail bool // as set at the current command
	errexit  bool
	lost     bool // the rest of the line may not run, or not as it reads
	depth    int
}

// script walks a list that a shell runs by itself, so that errexit has effect: it ends
// at a simple command that fails, though not within && and ||.
func (w *walker) script(list []*syntax.Stmt, proven bool) {
	for i, s := range list {
		_, simple := s.Cmd.(*syntax.CallExpr)
		w.command(s, proven && (i == len(list)-1 || simple && w.errexit))
	}
}

// list walks the commands of a list, whose exit code is that of the last one.
func (w *walker) list(list []*syntax.Stmt, proven bool) {
	for i, s := range list {
		w.command(s, proven && i == len(list)-1)
	}
}

func (w *walker) command(s *syntax.Stmt, proven bool) {
	proven = proven && !s.Negated && !s.Background && !s.Coprocess
	if s.Background || s.Coprocess {
		defer w.subshell()()
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(c, proven)
	case *syntax.BinaryCmd:
		// Of a && b both succeed. Of a || b either may, and b may not run. A pipe
		// has the exit code of its end.
		both := c.Op == syntax.AndStmt
		pipe := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
		if pipe {
			defer w.subshell()()
		}
		w.command(c.X, proven && (both || pipe && w.pipefail))
		errexit, pipefail := w.errexit, w.pipefail
		w.command(c.Y, proven && (both || pipe))
		w.errexit, w.pipefail = w.errexit && errexit, w.pipefail && pipefail
	case *syntax.Subshell:
		defer w.subshell()()
		w.list(c.Stmts, proven)
	case *syntax.Block:
		w.list(c.Stmts, proven)
	case *syntax.FuncDecl: // it may replace a program
		w.lose()
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.command(c.Stmt, proven)
		}
	case nil: // redirections
	default: // its commands may run, and one may leave the shell; none counts as a step
		syntax.Walk(c, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
				return false // it leaves that alone
			case *syntax.FuncDecl:
				w.lose()
			case *syntax.CallExpr:
				switch program := builtinOf(wordsOf(n)); program {
				case "break", "continue": // the clause
				default:
					if program == "set" || leaves(program) {
						w.lose()
					}
				}
			}
			return true
		})
	}
}

// subshell begins a part whose options end with it.
func (w *walker) subshell() (end func()) {
	errexit, pipefail := w.errexit, w.pipefail
	return func() { w.errexit, w.pipefail = errexit, pipefail }
}

// wordsOf returns the words of a simple command without assignments.
func wordsOf(c *syntax.CallExpr) (words []string) {
	for _, word := range c.Args {
		words = append(words, valueOf(word))
	}
	return words
}

// builtinOf returns what a simple command runs if that is a builtin of the shell.
func builtinOf(words []string) string {
	for len(words) > 1 && (words[0] == "command" || words[0] == "builtin" || strings.HasPrefix(words[0], "-")) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	return path.Base(words[0])
}

// leaves reports whether a program of the shell leaves it, or changes what follows.
func leaves(program string) bool {
	switch program {
	case "exit", "return", "exec", "eval", "alias", "trap", "break", "continue":
		return true
	}
	return false
}

func (w *walker) call(c *syntax.CallExpr, proven bool) {
	words := wordsOf(c)
	if len(words) == 0 {
		return
	}
	if script, pipefail, ok := scriptOf(words); ok {
		inner := walker{depth: w.depth + 1, pipefail: pipefail}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
		if err == nil && w.depth < maxShells {
			inner.script(file.Stmts, proven && !w.lost)
			w.steps = append(w.steps, inner.steps...)
		}
		return
	}
	switch program := builtinOf(words); {
	case program == "set":
		w.set(words[slices.Index(words, "set")+1:])
	case leaves(program):
		w.lose()
	}
	w.steps = append(w.steps, step{words, proven && !w.lost})
}

// set notes the options that the command set turns on or off.
func (w *walker) set(words []string) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if strings.ContainsAny(word, "$`") { // whatever that is
			w.errexit, w.pipefail = false, false
		}
		on := strings.HasPrefix(word, "-")
		if word == "-" || word == "--" || !on && !strings.HasPrefix(word, "+") {
			return
		}
		name := ""
		if strings.HasSuffix(word, "o") && len(words) > 0 {
			name, words = words[0], words[1:]
		}
		if name == "errexit" || strings.Contains(word, "e") {
			w.errexit = on
		}
		if name == "pipefail" {
			w.pipefail = on
		}
	}
}

// lose takes the proof from all steps of the line.
func (w *walker) lose() {
	for i := range w.steps {
		w.steps[i].proven = false
	}
	w.lost = true
}

// scriptOf returns the script of sh -c, behind programs such as env too.
func scriptOf(words []string) (script string, pipefail, ok bool) {
	shell := slices.IndexFunc(words, func(word string) bool { return slices.Contains(shells, path.Base(word)) })
	if shell < 0 || shell > 0 && !slices.Contains(wrappers, path.Base(words[0])) {
		return "", false, false
	}
	for i, word := range words[shell+1:] {
		if rest := words[shell+2+i:]; shellFlags.MatchString(word) && len(rest) > 0 {
			return rest[0], slices.Contains(words[:shell+2+i], "pipefail"), true
		}
		if !strings.HasPrefix(word, "-") && word != "pipefail" {
			break // the name of a script
		}
	}
	return "", false, false
}

var (
	shells     = []string{"sh", "bash", "dash", "zsh", "ksh"}
	wrappers   = []string{"env", "nice", "ionice", "timeout", "nohup", "stdbuf", "sudo", "xvfb-run", "time", "command"}
	shellFlags = regexp.MustCompile(`^-[a-z]*c$`)
)

// valueOf returns a word without its quotes, expansions as they are written.
func valueOf(word *syntax.Word) string {
	var b strings.Builder
	parts(&b, word.Parts)
	return b.String()
}

func parts(b *strings.Builder, list []syntax.WordPart) {
	for _, part := range list {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, "\\", ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			parts(b, p.Parts)
		default:
			_ = syntax.NewPrinter().Print(b, p) // a Builder takes every write
		}
	}
}

// CommandLine returns words as a command line of a shell, or "" if one has a NUL.
func CommandLine(words []string) string {
	var list []string
	for _, word := range words {
		text, err := syntax.Quote(word, syntax.LangBash)
		if err != nil { // a NUL
			return ""
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// runs reports whether s is the claimed step, itself or behind a program such as env.
func (s step) runs(claim step) bool {
	behind := len(s.words) - len(claim.words)
	return behind == 0 && slices.Equal(s.words, claim.words) ||
		behind > 0 && slices.Contains(wrappers, path.Base(s.words[0])) && slices.Equal(s.words[behind:], claim.words)
}
