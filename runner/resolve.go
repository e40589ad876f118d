package runner

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// A Selection is the runtime of a run and how it was found.
type Selection struct {
	Token    string // the selected name, for example "codex:local"
	Runtime  registry.Runtime
	Variant  string
	Path     string   // absolute path of the executable; "" if it is not installed
	Source   string   // of the name; see [Setting]
	Warnings []string // about skipped runtimes; Runner.Warn got them too
}

// Resolve selects the runtime for a call that names token; an empty token names none.
// It starts no process. The error is of kind agent.ErrUsage for an unknown name,
// agent.ErrNotInstalled for a named runtime without an executable, which the Selection
// then names without a Path, and agent.ErrNoneAvailable if there is nothing to select.
func (r *Runner) Resolve(ctx context.Context, token string) (Selection, error) {
	var warnings []string
	sel, err := r.resolve(r.lookup(ctx, func(line string) {
		warnings = append(warnings, oneLine(line))
		r.warn(line)
	}), token)
	sel.Warnings = warnings
	return sel, err
}

func (r *Runner) resolve(l *lookup, token string) (Selection, error) {
	var sel Selection
	detected, lists := r.detect(l)
	if err := cmp.Or(lists.Enable.Err, lists.Disable.Err); err != nil {
		return sel, err
	}
	for _, named := range r.named(token) {
		name, source := token, SourceCall
		if named.source != nil {
			var err error
			if name, source, err = l.text([]Source{*named.source}, "", ""); err != nil {
				return sel, err
			}
		}
		if name == "" {
			continue
		}
		rt, variant, err := r.registry().ParseToken(name)
		if err != nil {
			return sel, SourceError(source, err)
		}
		d := pick(detected, rt.ID)
		if d.Disabled != "" {
			if source == SourceCall {
				source = cmp.Or(r.CallName, "runtime")
			}
			l.warn(fmt.Sprintf("%s %s is %s; trying the next source", source, name, d.Disabled))
			continue
		}
		sel.Token, sel.Runtime, sel.Variant, sel.Path, sel.Source = name, rt, variant, d.Path, source
		if d.Path == "" {
			return sel, notInstalled(name, d)
		}
		return sel, nil
	}
	if lists.Order.Err != nil {
		return sel, lists.Order.Err
	}
	if r.RequireConfigured {
		return sel, &agent.Error{Kind: agent.ErrNoneAvailable, Err: notConfigured(detected)}
	}
	for _, d := range detected {
		if d.Automatic() {
			sel.Token, sel.Runtime, sel.Path, sel.Source = d.Runtime.ID, d.Runtime, d.Path, SourceFirstAvailable
			return sel, nil
		}
	}
	return sel, &agent.Error{Kind: agent.ErrNoneAvailable, Err: noneAvailable(detected)}
}

// NamedRuntimes returns the runtime of each source that names one, highest precedence
// first, whether or not it can be used. A value that is not a runtime is an error; see
// [Setting].
func (r *Runner) NamedRuntimes(ctx context.Context) []Setting[string] {
	l := r.lookup(ctx, func(string) {})
	var named []Setting[string]
	for _, s := range r.sources().Runtime {
		name, source, err := l.text([]Source{s}, "", "")
		if err == nil && name == "" {
			continue
		}
		if err == nil {
			if _, _, unknown := r.registry().ParseToken(name); unknown != nil {
				err = SourceError(source, unknown)
			}
		}
		if err != nil {
			name = ""
		}
		named = append(named, Setting[string]{Value: name, Source: source, Err: err})
	}
	return named
}

// candidate is one source that can name the runtime; nil is the call.
type candidate struct{ source *Source }

func (r *Runner) named(token string) []candidate {
	var list []candidate
	if token != "" {
		list = append(list, candidate{})
	}
	sources := r.sources().Runtime
	for i := range sources {
		list = append(list, candidate{&sources[i]})
	}
	return list
}

func pick(detected []Detected, id string) Detected {
	for _, d := range detected {
		if d.Runtime.ID == id {
			return d
		}
	}
	return Detected{}
}

func notInstalled(token string, d Detected) error {
	rt := d.Runtime
	err := fmt.Errorf("%s is not installed: no %s in PATH; get it at %s", rt.Name, strings.Join(rt.Executables, " or "), rt.InstallURL)
	if d.Problem != nil {
		err = fmt.Errorf("%s cannot be used: %w; or get it at %s", rt.Name, d.Problem, rt.InstallURL)
	}
	return &agent.Error{Kind: agent.ErrNotInstalled, Runtime: token, Err: err}
}

// cannotStart returns the error of an executable that was found but does not start.
func cannotStart(s Selection, err error) error {
	return fmt.Errorf("%s cannot be started: %w; install %s again from %s", s.Path, err, s.Runtime.Name, s.Runtime.InstallURL)
}

func noneAvailable(detected []Detected) error {
	var b strings.Builder
	b.WriteString("no agent runtime is available; install or enable one of:")
	for _, d := range detected {
		if d.Runtime.NamedOnly && d.Path == "" {
			continue // to install it would not help
		}
		b.WriteString("\n  " + d.Runtime.ID + ": ")
		switch {
		case d.Disabled != "" && d.Path != "":
			b.WriteString("installed, but " + d.Disabled)
		case d.Available():
			b.WriteString("installed, but used only if you name it")
		case d.Problem != nil:
			b.WriteString(d.Problem.Error() + "; or get it at " + d.Runtime.InstallURL)
		default:
			b.WriteString(d.Runtime.InstallURL)
		}
	}
	return errorText(b.String())
}

func notConfigured(detected []Detected) error {
	var available, missing []string
	for _, d := range detected {
		if d.Available() {
			available = append(available, d.Runtime.ID)
		} else {
			missing = append(missing, d.Runtime.ID)
		}
	}
	example := "ID"
	if len(available) > 0 {
		example = available[0]
	} else if len(missing) > 0 {
		example = missing[0]
	}
	return errorText(fmt.Sprintf("no default runtime is configured\n  available: %s\n  not available: %s\n  choose one, for example: bus-agent set runtime %s",
		orNone(available), orNone(missing), example))
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// errorText is an error of several lines.
type errorText string

func (e errorText) Error() string { return string(e) }
