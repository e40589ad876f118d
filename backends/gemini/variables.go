package gemini

import (
	"os"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// refuseVariables refuses a run whose environment the repository could set: Gemini CLI
// always reads .gemini/.env, and reads .env if the settings allow it.
func refuseVariables(inv registry.Invocation, workdir string, distrusted bool) error {
	if err := refuseEnvFile(inv, workdir, ".gemini/.env"); err != nil {
		return err
	}
	if distrusted {
		return nil
	}
	return refuseEnvSetting(inv, workdir)
}

// refuseEnvFile refuses a file of variables in the workdir or above it, except in a home
// of the user.
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

// refuseEnvSetting refuses settings of the repository that make the CLI read its .env.
//
// The settings of the run exclude .env, and Gemini CLI ignores those of the repository
// when it starts. But --skip-trust makes it trust files that it reads later, and it
// reads the settings again if its start takes more than ten seconds, which a repository
// can cause (0.61.0).
func refuseEnvSetting(inv registry.Invocation, workdir string) error {
	if inv.IsHome(userHome, workdir) {
		return nil
	}
	file := filepath.Join(workdir, filepath.FromSlash(settingsPath))
	if _, err := os.Stat(file); err != nil {
		return nil // Gemini CLI ignores it too
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

// refuseEnvOfHome refuses a .env that the settings in the caller's home do not exclude.
func refuseEnvOfHome(inv registry.Invocation, workdir, home string) error {
	settings, err := readObject(filepath.Join(home, filepath.FromSlash(settingsPath)))
	if err == nil && settings.ignoresEnv(false) {
		return nil
	}
	return refuseEnvFile(inv, workdir, ".env")
}

// ignoresEnv reports whether settings exclude .env files; unset is the result if they
// do not decide it.
func (o object) ignoresEnv(unset bool) bool {
	value, err := o.get("advanced", "ignoreLocalEnv")
	if err != nil {
		return false
	}
	return value == nil && unset || string(value) == "true"
}
