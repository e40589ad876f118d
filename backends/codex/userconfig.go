package codex

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// configName is the file with the user's settings, variablesName that with further
// variables of Codex.
const (
	configName    = "config.toml"
	variablesName = ".env"
)

// maxConfig bounds the user's settings file.
const maxConfig = 4 << 20

// userFiles are further files of the user's settings.
var userFiles = []string{variablesName, "hooks.json", "rules"}

// userConfig describes the user's configuration. By the specification a run uses
// none of it unless the caller says so.
var userConfig = registry.UserConfig{
	Modes: []agent.UserConfig{agent.UserConfigOff, agent.UserConfigOn},
	Files: configFiles,
}

// configFiles returns the files of the user's configuration. Those of a home that the
// caller chose count unless they are switched off; those inside the repository are the
// subject of another warning.
func configFiles(inv registry.Invocation) []agent.ConfigFile {
	home := inv.UserHome(userHome)
	if home == "" || inv.Untrusted(home) {
		return nil
	}
	_, ownHome := agent.LookupEnv(inv.Env, homeEnv)
	used := inv.UserConfig == agent.UserConfigOn || ownHome && inv.UserConfig == ""
	files := registry.ConfigFiles(home, used, configName, variablesName)
	if used {
		return files
	}
	for i, f := range files {
		text, err := registry.ReadFile(f.Path, maxConfig)
		switch {
		case err != nil: // it is not used
		case filepath.Base(f.Path) == configName:
			files[i].Routes = routes(string(text))
		default:
			files[i].Routes = routeVariables(string(text))
		}
	}
	return files
}

// routeKeys are the settings at the top of config.toml (0.169.0) that change where
// requests go or how they are paid for.
var routeKeys = []string{
	"chatgpt_base_url", "cli_auth_credentials_store", "forced_chatgpt_workspace_id", "forced_login_method",
	"model_provider", "openai_base_url", "oss_provider", "preferred_auth_method", "profile", "service_tier",
}

// routes returns the settings in text, that of a config.toml, that change where
// requests go or how they are paid for, in order.
func routes(text string) (found []string) {
	add := func(name string) {
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	for _, key := range tomlKeys(text) {
		switch {
		case len(key) == 1 && slices.Contains(routeKeys, key[0]):
			add(key[0])
		case len(key) > 1 && key[0] == "model_providers":
			add(key[0] + "." + key[1])
		}
	}
	return found
}

// routeVariables returns the variables in text, that of a .env, that change where
// requests go or how they are paid for.
func routeVariables(text string) (found []string) {
	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		name = strings.TrimSpace(name)
		upper := strings.ToUpper(name)
		if ok && !strings.HasPrefix(name, "#") && (strings.HasSuffix(upper, "_BASE_URL") || strings.HasSuffix(upper, "_PROXY") || strings.HasSuffix(upper, "_API_KEY")) {
			found = append(found, name)
		}
	}
	return found
}

// addUserConfig gives a home the user's configuration if it counts, with the MCP servers of
// the caller, and returns the user's own AGENTS.md. The settings are a copy, because Codex
// changes them.
func addUserConfig(inv registry.Invocation, home *instructions.Home) (text string, err error) {
	var settings string
	defer func() {
		if err != nil {
			return
		}
		var added string
		if added, err = servers(inv.MCPServers, settings, inv.Access != agent.AccessRead); err == nil && settings+added != "" {
			err = home.WriteFile(configName, []byte(settings+added), 0o600)
		}
	}()
	user := inv.UserHome(userHome)
	if inv.UserConfig != agent.UserConfigOn || user == "" || inv.Untrusted(user) {
		return "", nil
	}
	for name, add := range map[string]func(data []byte) error{
		configName:            func(data []byte) error { settings = strings.TrimRight(string(data), "\n") + "\n"; return nil },
		instructions.FileName: func(data []byte) error { text = string(data); return nil },
	} {
		file := filepath.Join(user, name)
		if inv.Untrusted(file) {
			continue
		}
		data, err := registry.ReadFile(file, maxConfig)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", &agent.Error{Kind: agent.ErrUsage, Err: fmt.Errorf("your %s cannot be used: %w", file, err)}
		}
		if err := add(data); err != nil {
			return "", err
		}
	}
	if text != "" {
		text = strings.TrimRight(text, "\n") + "\n\n"
	}
	return text, registry.LinkFiles(inv, home, user, userFiles...)
}
