package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// maxSettings bounds the user's settings file.
const maxSettings = 4 << 20

// defaultContext is the context file that Gemini CLI reads by default.
const defaultContext = "GEMINI.md"

// An object is a JSON object with unknown members.
type object map[string]json.RawMessage

// settings are the settings of a private home: the user's, with additions for the
// run.
type settings struct {
	all   object
	names []string // of context files
}

// readSettings reads the user's settings and adds those of the run.
func readSettings(inv registry.Invocation) (settings, error) {
	s := settings{all: object{}}
	home := homeOfUser(inv)
	file := filepath.Join(home, filepath.FromSlash(settingsPath))
	if home != "" {
		var err error
		if s.all, err = readObject(file); err != nil {
			return s, &agent.Error{Kind: agent.ErrUsage, Err: fmt.Errorf("the settings in %s cannot be used: %w", file, err)}
		}
		if inv.UserConfig == agent.UserConfigOff {
			if s.all, err = s.all.login(); err != nil {
				return s, agent.Usagef("the settings in %s cannot be used: %w", file, err)
			}
		}
	}
	if err := s.adapt(inv); err != nil {
		return s, agent.Usagef("the settings in %s cannot be used: %w", file, err)
	}
	return s, nil
}

// loginKeys lead to how the user logs in.
var loginKeys = []string{"security", "auth", "selectedType"}

// login returns settings that only say how the user logs in.
func (o object) login() (object, error) {
	login := object{}
	value, err := o.get(loginKeys...)
	if err != nil || value == nil {
		return login, err
	}
	return login, login.set(value, loginKeys...)
}

// readObject reads a settings file, which may have comments; an absent one is
// empty.
func readObject(file string) (object, error) {
	text, err := registry.ReadFile(file, maxSettings)
	if notThere(err) {
		return object{}, nil
	}
	if err != nil {
		return nil, err
	}
	return registry.ParseObject(text)
}

func (s *settings) adapt(inv registry.Invocation) error {
	// Discovery stops at the root of the repository, as for every runtime.
	if err := s.all.set(nil, "context", "memoryBoundaryMarkers"); err != nil {
		return err
	}
	fileName, err := s.all.get("context", "fileName")
	if err != nil {
		return err
	}
	if s.names, err = contextNames(fileName); err != nil {
		return err
	}
	// In a terminal, Gemini CLI would update itself.
	err = s.all.set(false, "general", "enableAutoUpdate")
	if err == nil {
		err = s.all.setDefault(maxAttempts, "general", "maxAttempts")
	}
	if err == nil && !inv.TrustWorkspace {
		err = s.all.set(true, "advanced", "ignoreLocalEnv")
	}
	if err == nil && !inv.TrustWorkspace {
		err = s.all.set(true, "security", "folderTrust", "enabled") // else every folder is trusted
	}
	if err == nil && inv.MaxTurns > 0 {
		err = s.all.set(inv.MaxTurns, "model", "maxSessionTurns")
	}
	if err == nil && inv.Access != agent.AccessFull {
		err = s.exclude(planTools)
	}
	if err == nil && len(inv.DenyTools) > 0 {
		err = s.exclude(inv.DenyTools)
	}
	if err == nil && len(inv.AllowTools) > 0 {
		err = s.only(inv)
	}
	for _, server := range inv.MCPServers {
		if err == nil {
			err = s.all.set(serverSettings(server, inv.Access != agent.AccessRead), "mcpServers", server.Name)
		}
	}
	if err == nil && keyNeedsSelection(inv.Getenv) {
		err = s.all.setDefault("gemini-api-key", "security", "auth", "selectedType")
	}
	return err
}

// serverSettings returns the settings of an MCP server. Without a user who could be asked,
// trust lets the model call its tools.
func serverSettings(s agent.MCPServer, trust bool) object {
	server := object{"trust": encode(trust)}
	switch {
	case s.Command != "":
		server["command"], server["args"], server["env"] = encode(s.Command), encode(append([]string{}, s.Args...)), encode(s.Env)
	case s.SSE:
		server["url"], server["headers"] = encode(s.URL), encode(s.Headers)
	default:
		server["httpUrl"], server["headers"] = encode(s.URL), encode(s.Headers)
	}
	for _, name := range []string{"env", "headers"} {
		if string(server[name]) == "null" {
			delete(server, name)
		}
	}
	return server
}

// maxAttempts is the number of attempts of a model request unless the user's settings
// have another. The default of ten takes four minutes without output.
const maxAttempts = 3

// keyNeedsSelection reports whether the settings must select the login by key: with
// another base URL, Gemini CLI does not find the key otherwise.
func keyNeedsSelection(env func(string) string) bool {
	return env("GEMINI_API_KEY") != "" && env("GOOGLE_GEMINI_BASE_URL") != "" &&
		env("GOOGLE_GENAI_USE_VERTEXAI") != "true" && env("GOOGLE_GENAI_USE_GCA") != "true"
}

// write puts the settings into a private home.
func (s *settings) write(home *instructions.Home) error {
	if err := s.all.set(s.names, "context", "fileName"); err != nil {
		return err
	}
	return home.WriteFile(settingsPath, encode(s.all), 0o600)
}

// contextNames returns the names in context.fileName, a string or a list.
func contextNames(value json.RawMessage) ([]string, error) {
	if value == nil {
		return []string{defaultContext}, nil
	}
	var name string
	if json.Unmarshal(value, &name) == nil {
		return []string{name}, nil
	}
	var names []string
	if json.Unmarshal(value, &names) != nil {
		return nil, errors.New("context.fileName is neither a name nor a list of names")
	}
	return slices.Clip(names), nil
}

// part returns the object at key, or an empty one.
func (o object) part(key string) (object, error) {
	part := object{}
	if value, ok := o[key]; ok {
		if json.Unmarshal(value, &part) != nil || part == nil {
			return nil, fmt.Errorf("%q is not an object", key)
		}
	}
	return part, nil
}

// get returns the value at a path of keys, or nil.
func (o object) get(path ...string) (json.RawMessage, error) {
	for _, key := range path[:len(path)-1] {
		var err error
		if o, err = o.part(key); err != nil {
			return nil, err
		}
	}
	return o[path[len(path)-1]], nil
}

// set sets the value at a path of keys, or removes it if value is nil.
func (o object) set(value any, path ...string) error {
	key := path[0]
	if len(path) > 1 {
		part, err := o.part(key)
		if err != nil {
			return err
		}
		if err := part.set(value, path[1:]...); err != nil {
			return err
		}
		value = part
	}
	if value == nil {
		delete(o, key)
	} else {
		o[key] = encode(value)
	}
	return nil
}

// setDefault sets the value at a path of keys if it is absent.
func (o object) setDefault(value any, path ...string) error {
	if old, err := o.get(path...); err != nil || old != nil {
		return err
	}
	return o.set(value, path...)
}

// encode returns a value of these settings as JSON. It cannot fail.
func encode(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
