package backendtest

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

var descriptorRules = []rule{
	{name: "descriptor", test: descriptor,
		text: "A runtime says who it is in words that can be shown and used: a name, plain executables, an address to get it from, known words only, each once."},
	{name: "register", test: registerTwice,
		text: "A runtime can be registered once, and the second time is refused with an error that names both places."},
	{name: "detect", test: detect,
		text: "A runtime is detected by any of its executables alone, and neither detecting nor resolving it starts a process or writes a file."},
	{name: "not-installed", test: notInstalled,
		text: "Without an executable a run fails as not installed, or as none available where no runtime was named, and says where to get it."},
	{name: "recognize", test: recognize, spoken: true,
		applies: func(h *Harness) bool { return h.Runtime.Recognize != nil },
		text:    "A runtime recognizes the line its output begins with, and no text that a user could have written."},
}

func descriptor(w *world) {
	rt := &w.Runtime
	if err := new(registry.Registry).Register(*rt); err != nil {
		w.failf("%v", err)
	}
	if strings.ContainsFunc(rt.Name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		w.failf("the name %q cannot be printed", rt.Name)
	}
	if u, err := url.Parse(rt.InstallURL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		w.failf("%q is not a web address", rt.InstallURL)
	}
	for _, name := range slices.Concat(rt.TokenEnv, rt.ProviderEnv, rt.NestedEnv) {
		if name == "" || strings.ContainsAny(name, "=\x00 ") {
			w.failf("%q is not the name of a variable", name)
		}
	}
	words(w, "Executables", rt.Executables, nil)
	words(w, "TokenEnv", rt.TokenEnv, nil)
	words(w, "Options.Access", rt.Run.Options.Access, agent.Accesses())
	words(w, "Options.Efforts", rt.Run.Options.Efforts, agent.Efforts())
	words(w, "Options.Verbosity", rt.Run.Options.Verbosity, agent.Verbosities())
	if rt.PromptLimit.Bytes < 0 || rt.PromptLimit.Runes < 0 {
		w.failf("PromptLimit %+v is negative", rt.PromptLimit)
	}
	for _, name := range rt.EmptyDirs {
		if !filepath.IsLocal(name) || name == "." {
			w.failf("%q in EmptyDirs is not a path below the workdir", name)
		}
	}
	if rt.Instructions == nil {
		return
	}
	for _, o := range rt.Instructions.Owned {
		if o.Home != "" && (!filepath.IsLocal(o.Home) || o.Home == ".") {
			w.failf("the home %q in Instructions.Owned is not a path below the workdir", o.Home)
		}
	}
	if rt.NewDecoder() == nil || rt.NewFormatter() == nil {
		w.failf("it makes a decoder or a formatter that is nil")
	}
}

// words checks that each of list is known, if that can be tested, and there
// once.
func words[T ~string](w *world, field string, list, known []T) {
	for i, word := range list {
		if known != nil && !slices.Contains(known, word) {
			w.failf("%s has the unknown word %q", field, word)
		}
		if slices.Contains(list[:i], word) {
			w.failf("%s has %q twice", field, word)
		}
	}
}

func registerTwice(w *world) {
	var r registry.Registry
	if err := r.Register(w.Runtime); err != nil {
		w.fatalf("it cannot be registered: %v", err)
	}
	if err := r.Register(w.Runtime); !errors.Is(err, registry.ErrDuplicate) || strings.Count(err.Error(), ".go:") != 2 {
		w.failf("the second time gives %v", err)
	}
	for _, token := range w.tokens() {
		if rt, _, err := r.ParseToken(token); err != nil || rt.ID != w.Runtime.ID {
			w.failf("%q is not understood: %v", token, err)
		}
	}
}

func detect(w *world) {
	before := w.snapshot(w.root)
	for i, name := range w.Runtime.Executables {
		bin := filepath.Join(w.root, "bin", fmt.Sprint("detect", i))
		a, err := Install(bin, name)
		w.must(err)
		r := w.runner(bin, nil)
		found, err := r.Detect(w.ctx)
		if err != nil || len(found) != 1 || found[0].Path != a.Path || !found[0].Available() {
			w.failf("with only %s installed Detect returns %d runtimes, %v", name, len(found), err)
		}
		for _, token := range w.tokens() {
			if s, err := r.Resolve(w.ctx, token); err != nil || s.Path != a.Path {
				w.failf("with only %s installed %s resolves to %q, %v", name, token, s.Path, err)
			}
		}
		seen, err := a.Invocation()
		w.must(err)
		if seen != nil {
			w.failf("%s was started with %s", name, quoted(seen.Args))
		}
	}
	if list := before.changes(w.snapshot(w.root), w.root, nil); len(list) > 0 {
		w.failf("files have changed: %s", strings.Join(list, ", "))
	}
}

func notInstalled(w *world) {
	r := w.runner(filepath.Join(w.root, "bin", "none"), nil)
	for _, c := range []struct {
		token string
		kind  error
	}{{w.Runtime.ID, agent.ErrNotInstalled}, {"", agent.ErrNoneAvailable}} {
		req := w.request()
		req.Runtime = c.token
		_, err := r.Run(w.ctx, req, agent.Output{})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), w.Runtime.InstallURL) {
			w.failf("a run of %q fails with %v", c.token, err)
		}
	}
}

func recognize(w *world) {
	first := w.all()[0]
	if !w.Runtime.Recognize([]byte(first)) {
		w.failf("the line %s is not recognized", clip(first))
	}
	for _, line := range []string{
		"", " ", "hello", "Error: not found", "{", "}", "[]", "{}", "null", "0", `"text"`, `{"type":"text"}`, `{"type":null}`,
		`{"level":"info","msg":"started"}`, "\x00\xff", first[:len(first)/2],
	} {
		if w.Runtime.Recognize([]byte(line)) {
			w.failf("the line %q is recognized", line)
		}
	}
}
