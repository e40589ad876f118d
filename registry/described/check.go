package described

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/busdk/bus-agent/instructions"
)

// checkWords fills in the defaults of the members that are one of several words.
func (d *Definition) checkWords() error {
	for _, m := range []struct {
		name  string
		value *string
		words []string
	}{
		{"prompt", &d.Prompt, []string{promptByStdin, promptByArgument, promptByFile}},
		{"instructions", &d.Instructions, []string{instructionsInPrompt, instructionsNative, instructionsNone}},
	} {
		if *m.value == "" {
			*m.value = m.words[0]
		}
		if !slices.Contains(m.words, *m.value) {
			return fmt.Errorf("%s: %q is not one of %s", m.name, *m.value, strings.Join(m.words, ", "))
		}
	}
	return nil
}

// checkNames checks the names that users see and those of executables.
func (d *Definition) checkNames() error {
	if !printable(d.Name) || len(d.Name) > maxName {
		return fmt.Errorf("name: %q has a character that is not printable, or more than %d bytes", d.Name, maxName)
	}
	if len(d.Executables) == 0 {
		return errors.New(`"executables" is missing: a list of the names of its program`)
	}
	for i, name := range d.Executables {
		if name == "" || name == "." || name == ".." || !printable(name) || strings.ContainsAny(name, `/\`) {
			return fmt.Errorf("executables[%d]: %q must be a plain name, which is looked for in PATH", i, name)
		}
	}
	if d.InstallURL == "" {
		return errors.New(`"install_url" is missing: the address that says where to get it`)
	}
	if !isWebAddress(d.InstallURL) {
		return fmt.Errorf("install_url: %q is not an address that begins with https:// or http://", d.InstallURL)
	}
	for i, name := range d.TokenEnv {
		if !isVariable(name) {
			return fmt.Errorf("token_env[%d]: %q is not the name of a variable", i, name)
		}
		if slices.Contains(neededEnv, name) {
			return fmt.Errorf("token_env[%d]: %s is needed by every program and holds no credential", i, name)
		}
	}
	for i, name := range d.Executed {
		if !isFileName(name) {
			return fmt.Errorf("executed[%d]: %q is not a path below a directory, such as .mine/hooks.json", i, name)
		}
	}
	for i, name := range d.Reads {
		if err := (instructions.Read{Name: name}).Check(); err != nil || !printable(name) {
			return fmt.Errorf("reads[%d]: %q is not a path below a folder, such as .mine/skills/*/SKILL.md", i, name)
		}
	}
	if err := checkEnv(d.Env); err != nil {
		return fmt.Errorf("env: %w", err)
	}
	return nil
}

// checkEnv returns what is wrong with variables.
func checkEnv(env map[string]*string) error {
	for name, value := range env {
		switch {
		case !isVariable(name):
			return fmt.Errorf("%q is not the name of a variable", name)
		case name == runVariable:
			return fmt.Errorf("%s is how a run finds its processes again", name)
		case value != nil && strings.ContainsRune(*value, 0):
			return fmt.Errorf("the value of %s has a NUL character", name)
		case value != nil && *value != "" && !filepath.IsAbs(*value) && slices.Contains(startupFiles, name):
			return fmt.Errorf("the value of %s must be an absolute path: the agent runs in the repository, which would decide what a relative one leads to", name)
		}
	}
	return nil
}

// printable reports whether s is safe to print.
func printable(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}

func isWebAddress(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	return ok && rest != "" && rest[0] != '/' && strings.IndexFunc(s, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}

func isVariable(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
