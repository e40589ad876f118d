package gemini

import (
	"os"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// refuseVariables refuses a run whose environment the repository could set:
// Gemini CLI cannot be kept from reading .gemini/.env, and not from reading .env
// where the settings let it.
func refuseVariables(inv registry.Invocation, workdir string, distrusted bool) error {
	if err := refuseEnvFile(inv, workdir, ".gemini/.env"); err != nil {
		return err
	}
	if distrusted {
		return nil
	}
	return refuseEnvSetting(inv, workdir)
}

// refuseEnvFile refuses a file of variables in the workdir or above it that is
// not in a home of the user's.
func refuseEnvFile(inv registry.Invocation, workdir, name string) error {
	for dir := workdir; ; dir = filepath.Dir(dir) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(file); err == nil && !inv.IsHome(userHome, dir) {
			return agent.Usagef("the environment would be set from %s; remove the file or use --trust-workspace", file)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// refuseEnvSetting refuses settings of the repository that let its .env in.
//
// The run's own settings keep it out, and those of the repository do not count
// when Gemini CLI starts. But --skip-trust makes it trust what it reads from then
// on, and it reads the settings again when it takes more than ten seconds to
// start, which a repository can bring about (0.61.0).
func refuseEnvSetting(inv registry.Invocation, workdir string) error {
	if inv.IsHome(userHome, workdir) {
		return nil
	}
	file := filepath.Join(workdir, filepath.FromSlash(settingsPath))
	if _, err := os.Stat(file); err != nil {
		return nil // Gemini CLI takes it for absent too
	}
	settings, err := readObject(file)
	if err != nil {
		return agent.Usagef("whether %s sets the environment cannot be known: %w; correct the file or use --trust-workspace", file, err)
	}
	if !settings.ignoresEnv(true) {
		return agent.Usagef("the environment could be set from a .env, as %s says with advanced.ignoreLocalEnv; remove that or use --trust-workspace", file)
	}
	return nil
}

// refuseEnvOfHome refuses a .env that the settings in a home of the caller's do
// not keep out.
func refuseEnvOfHome(inv registry.Invocation, workdir, home string) error {
	settings, err := readObject(filepath.Join(home, filepath.FromSlash(settingsPath)))
	if err == nil && settings.ignoresEnv(false) {
		return nil
	}
	return refuseEnvFile(inv, workdir, ".env")
}

// ignoresEnv reports whether settings keep .env files out, or leave that to
// others with the answer unset.
func (o object) ignoresEnv(unset bool) bool {
	value, err := o.get("advanced", "ignoreLocalEnv")
	if err != nil {
		return false
	}
	return value == nil && unset || string(value) == "true"
}
