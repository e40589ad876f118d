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
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// A RuntimeOverride is a file that sets the default runtime of sessions.
type RuntimeOverride struct {
	Path    string
	Runtime string // token, not checked
}

// maxRuntimeOverride is the longest file of a choice, in bytes.
const maxRuntimeOverride = 64 << 10

// FindRuntimeOverrides reads the files that set the default runtime of sessions in
// workdir, highest precedence first: .gastown/runtime.json in the workdir or the
// nearest directory above it, {"runtime": "NAME"}, and .gastown/runtimes.json in the
// home of the user, {"default": "NAME"}. They set nothing else: the program of a
// runtime and its protocol come from its description. A file that cannot be used
// causes a warning, as does one that names another program for a runtime.
func FindRuntimeOverrides(environ []string, workdir string, known *registry.Registry) (choices []RuntimeOverride, warnings []string) {
	warn := func(path string, err error) {
		warnings = append(warnings, fmt.Sprintf("%s is not used: %v", path, err))
	}
	if path := findAbove(workdir, filepath.Join(".gastown", "runtime.json")); path != "" {
		var file struct {
			Runtime string `json:"runtime"`
		}
		if err := readRuntimeOverride(path, &file); err != nil {
			warn(path, err)
		} else if file.Runtime != "" {
			choices = append(choices, RuntimeOverride{path, file.Runtime})
		}
	}
	home, _ := agent.LookupEnv(environ, "HOME")
	if !filepath.IsAbs(home) {
		return choices, warnings
	}
	path := filepath.Join(home, ".gastown", "runtimes.json")
	var file struct {
		Default  string `json:"default"`
		Runtimes map[string]struct {
			Bin string `json:"bin"`
		} `json:"runtimes"`
	}
	switch err := readRuntimeOverride(path, &file); {
	case errors.Is(err, fs.ErrNotExist):
		return choices, warnings
	case err != nil:
		warn(path, err)
		return choices, warnings
	}
	for _, id := range slices.Sorted(maps.Keys(file.Runtimes)) {
		bin := file.Runtimes[id].Bin
		if rt, ok := known.Lookup(id); ok && bin != "" && !slices.Contains(rt.Executables, bin) {
			warnings = append(warnings, fmt.Sprintf("%s names the program %q for %s, which is not used: the file says only which runtime is the default", path, bin, id))
		}
	}
	if file.Default != "" {
		choices = append(choices, RuntimeOverride{path, file.Default})
	}
	return choices, warnings
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

// readRuntimeOverride reads a file of the user: one of another user could be in any
// directory that others can write to.
func readRuntimeOverride(path string, into any) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	text, err := statefile.Read(path, maxRuntimeOverride)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// WithRuntimeOverrides returns a copy of r that uses the runtime overrides when no
// variable or preference sets the runtime. The source of such a setting is the path
// of the override.
func WithRuntimeOverrides(r *runner.Runner, choices []RuntimeOverride) *runner.Runner {
	with := *r
	sources := runner.BusAgent()
	if r.Sources != nil {
		sources = *r.Sources
	}
	sources.Runtime = slices.Clone(sources.Runtime)
	values := make(map[string]json.RawMessage)
	for _, c := range choices {
		value, err := json.Marshal(c.Runtime)
		if err != nil {
			continue // no string is without a JSON form
		}
		sources.Runtime = append(sources.Runtime, runner.Source{Key: c.Path})
		values[c.Path] = value
	}
	with.Sources, with.Preferences = &sources, &chosen{r.Preferences, values}
	return &with
}

// chosen is preferences with choices as if they were preferences.
type chosen struct {
	base   runner.Preferences // may be nil
	values map[string]json.RawMessage
}

func (c *chosen) Get(ctx context.Context, key string) (json.RawMessage, bool, error) {
	if value, ok := c.values[key]; ok {
		return value, true, nil
	}
	if c.base == nil {
		return nil, false, nil
	}
	return c.base.Get(ctx, key)
}

// Snapshot is one of the base, where that has any.
func (c *chosen) Snapshot(ctx context.Context) (runner.Preferences, error) {
	base, ok := c.base.(runner.Snapshotter)
	if !ok {
		return c, nil
	}
	now, err := base.Snapshot(ctx)
	return &chosen{now, c.values}, err
}
