package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// A RuntimeOverride is a file that sets the default runtime of sessions.
type RuntimeOverride struct {
	Path    string
	Runtime string // token, not checked
	// PerRig reports that the file is of a rig, so that it overrides the preferences.
	PerRig bool
}

// maxRuntimeOverride is the longest runtime override, in bytes.
const maxRuntimeOverride = 64 << 10

// FindRuntimeOverrides reads the files that set the default runtime of sessions in
// workdir, highest precedence first: .gastown/runtime.json in the workdir or the
// nearest directory above it, {"runtime": "NAME"}, and .gastown/runtimes.json in the
// home of the user, {"default": "NAME"}. They set nothing else: the program of a
// runtime, how its sessions become ready and how they get messages come from its
// description. A file that cannot be used causes a warning, as does every other value
// for these.
func FindRuntimeOverrides(environ []string, workdir string, known *registry.Registry) (overrides []RuntimeOverride, warnings []string) {
	warn := func(path string, err error) {
		warnings = append(warnings, fmt.Sprintf("%s is not used: %v", path, err))
	}
	if path := findAbove(workdir, filepath.Join(".gastown", "runtime.json")); path != "" {
		var file struct {
			Runtime string `json:"runtime"`
			runtimeSettings
		}
		if err := readRuntimeOverride(path, &file); err != nil {
			warn(path, err)
		} else {
			rt, _, _ := known.ParseToken(file.Runtime)
			if ignored := file.ignored(rt); len(ignored) > 0 {
				warnings = append(warnings, fmt.Sprintf("%s: ignoring %s; only \"runtime\" has an effect", path, strings.Join(ignored, ", ")))
			}
			if file.Runtime != "" {
				overrides = append(overrides, RuntimeOverride{path, file.Runtime, true})
			}
		}
	}
	home, _ := agent.LookupEnv(environ, "HOME")
	if !filepath.IsAbs(home) {
		return overrides, warnings
	}
	path := filepath.Join(home, ".gastown", "runtimes.json")
	var file struct {
		Default  string                     `json:"default"`
		Runtimes map[string]runtimeSettings `json:"runtimes"`
	}
	switch err := readRuntimeOverride(path, &file); {
	case errors.Is(err, fs.ErrNotExist):
		return overrides, warnings
	case err != nil:
		warn(path, err)
		return overrides, warnings
	}
	for _, id := range slices.Sorted(maps.Keys(file.Runtimes)) {
		rt, _ := known.Lookup(id)
		if ignored := file.Runtimes[id].ignored(rt); len(ignored) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: ignoring %s of %q; only \"default\" has an effect", path, strings.Join(ignored, ", "), id))
		}
	}
	if file.Default != "" {
		overrides = append(overrides, RuntimeOverride{path, file.Default, false})
	}
	return overrides, warnings
}

// runtimeSettings is what a file says about one runtime besides its name.
type runtimeSettings struct {
	Bin      string `json:"bin"`
	Ready    string `json:"ready"`
	Delivery string `json:"delivery"`
}

// ignored returns the settings that differ from those of rt.
func (s runtimeSettings) ignored(rt registry.Runtime) (list []string) {
	ignore := func(name, value string, same bool) {
		if value != "" && !same {
			list = append(list, fmt.Sprintf("%s %q", name, value))
		}
	}
	ignore("bin", s.Bin, slices.Contains(rt.Executables, s.Bin))
	ignore("ready", s.Ready, false) // the protocol of the session reports it
	ignore("delivery", s.Delivery, rt.Session != nil && s.Delivery == string(rt.Session.Delivers()))
	return list
}

// findAbove returns the path of a file in dir or the nearest directory above it
// that has one, "" where none has.
func findAbove(dir, name string) string {
	for {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// readRuntimeOverride reads a file of the user.
func readRuntimeOverride(path string, into any) error {
	text, err := statefile.ReadOwned(path, maxRuntimeOverride)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// WithRuntimeOverrides returns a copy of r that also uses the runtime overrides: those
// of a rig before the preferences that set the runtime, the others after them. The
// source of such a setting is the path of the override.
func WithRuntimeOverrides(r *runner.Runner, overrides []RuntimeOverride) *runner.Runner {
	with := *r
	sources := runner.BusAgent()
	if r.Sources != nil {
		sources = *r.Sources
	}
	var rig, user []runner.Source
	values := make(map[string]json.RawMessage)
	for _, o := range overrides {
		value, err := json.Marshal(o.Runtime)
		if err != nil {
			continue // no string is without a JSON form
		}
		values[o.Path] = value
		if o.PerRig {
			rig = append(rig, runner.Source{Key: o.Path})
		} else {
			user = append(user, runner.Source{Key: o.Path})
		}
	}
	stored := slices.IndexFunc(sources.Runtime, func(s runner.Source) bool { return s.Key != "" })
	if stored < 0 {
		stored = len(sources.Runtime)
	}
	sources.Runtime = slices.Concat(sources.Runtime[:stored], rig, sources.Runtime[stored:], user)
	with.Sources, with.Preferences = &sources, &overridden{r.Preferences, values}
	return &with
}

// overridden is preferences with overrides as if they were preferences.
type overridden struct {
	base   runner.Preferences // may be nil
	values map[string]json.RawMessage
}

func (c *overridden) Get(ctx context.Context, key string) (json.RawMessage, bool, error) {
	if value, ok := c.values[key]; ok {
		return value, true, nil
	}
	if c.base == nil {
		return nil, false, nil
	}
	return c.base.Get(ctx, key)
}

// Snapshot is one of the base, where that has any.
func (c *overridden) Snapshot(ctx context.Context) (runner.Preferences, error) {
	base, ok := c.base.(runner.Snapshotter)
	if !ok {
		return c, nil
	}
	now, err := base.Snapshot(ctx)
	return &overridden{now, c.values}, err
}
