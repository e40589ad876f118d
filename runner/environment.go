package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
)

// mergeEnv returns environ with changes applied: "NAME=value" sets, "NAME"
// removes. Each name occurs once, at its first position.
func mergeEnv(environ, changes []string) []string {
	if len(changes) == 0 {
		return environ
	}
	last := make(map[string]string, len(changes))
	for _, entry := range changes {
		name, _, _ := strings.Cut(entry, "=")
		last[name] = entry
	}
	merged := make([]string, 0, len(environ)+len(changes))
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		change, changed := last[name]
		switch {
		case !changed:
			merged = append(merged, entry)
		case strings.Contains(change, "="):
			merged = append(merged, change)
			last[name] = name
		}
	}
	for _, entry := range changes {
		name, _, _ := strings.Cut(entry, "=")
		if change := last[name]; strings.Contains(change, "=") {
			merged = append(merged, change)
			last[name] = name
		}
	}
	return merged
}

// makeTempDir makes a private folder in the first of [TempDirs] that can be used. It
// belongs to this process until the claim is released.
func makeTempDir(environ []string) (dir string, claim *process.Claim, err error) {
	for _, base := range TempDirs(environ) {
		if dir, claim, err = process.MakeTempDir(base); err == nil {
			return dir, claim, nil
		}
	}
	return "", nil, err
}

// TempDirs returns the directories in which a run makes the folder for its temporary
// files, the first that works: those of the agent's environment, of this process, and
// of the system.
func TempDirs(environ []string) (dirs []string) {
	base, _ := agent.LookupEnv(environ, "TMPDIR")
	for _, base := range []string{base, os.TempDir(), "/tmp"} {
		if filepath.IsAbs(base) && !slices.Contains(dirs, base) {
			dirs = append(dirs, base)
		}
	}
	return dirs
}
