package runner

import (
	"crypto/sha256"
	"encoding/hex"
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

// makeTempDir makes a private folder in the first of [TempDirs] that can be used, with
// a name for the key as in [process.MakeTempDir]. It belongs to this process until the
// claim is released.
func makeTempDir(environ []string, key string) (dir string, claim *process.Claim, err error) {
	for _, base := range TempDirs(environ) {
		if dir, claim, err = process.MakeTempDir(base, key); err == nil {
			return dir, claim, nil
		}
	}
	return "", nil, err
}

// tempKey returns the key of the folder for temporary files of a run: CLIs send its path
// to the model, so that of equal runs must be equal.
func tempKey(token, workdir string) string {
	hash := sha256.Sum256([]byte(token + "\x00" + workdir))
	return hex.EncodeToString(hash[:6])
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
