package gemini

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/tailscale/hujson"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// maxSettings bounds the user's settings file.
const maxSettings = 4 << 20

// defaultContext is the context file Gemini CLI reads unless settings name
// others.
const defaultContext = "GEMINI.md"

// An object is a JSON object of which only parts are known here.
type object map[string]json.RawMessage

// settings are the settings of a private home: the user's own and what the run
// needs.
type settings struct {
	all   object
	names []string // of context files
}

// readSettings reads the user's settings and adds what the run needs.
func readSettings(inv registry.Invocation) (settings, error) {
	s := settings{all: object{}}
	home := homeOfUser(inv)
	file := filepath.Join(home, filepath.FromSlash(settingsPath))
	if home != "" {
		var err error
		if s.all, err = readObject(file); err != nil {
			return s, &agent.Error{Kind: agent.ErrUsage, Err: fmt.Errorf("the settings in %s cannot be used: %w", file, err)}
		}
	}
	if err := s.adapt(inv); err != nil {
		return s, agent.Usagef("the settings in %s cannot be used: %w", file, err)
	}
	return s, nil
}

// readObject reads a settings file, which may have comments; an absent one is
// empty.
func readObject(file string) (object, error) {
	info, err := os.Stat(file)
	if notThere(err) {
		return object{}, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, instructions.ErrNotRegular
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have been replaced by a pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSettings {
		return nil, instructions.ErrTooLarge
	}
	if text, err = hujson.Standardize(text); err != nil {
		return nil, instructions.ErrUnparsable
	}
	all := object{}
	if json.Unmarshal(text, &all) != nil || all == nil {
		return nil, instructions.ErrUnparsable
	}
	return all, nil
}

func (s *settings) adapt(inv registry.Invocation) error {
	context, err := s.all.part("context")
	if err != nil {
		return err
	}
	// The boundary of discovery is the repository, as for every runtime.
	delete(context, "memoryBoundaryMarkers")
	s.all.set("context", context)
	if s.names, err = contextNames(context["fileName"]); err != nil {
		return err
	}
	if !inv.TrustWorkspace {
		advanced, err := s.all.part("advanced")
		if err != nil {
			return err
		}
		set(advanced, "ignoreLocalEnv", true)
		s.all.set("advanced", advanced)
	}
	if inv.MaxTurns > 0 {
		model, err := s.all.part("model")
		if err != nil {
			return err
		}
		set(model, "maxSessionTurns", inv.MaxTurns)
		s.all.set("model", model)
	}
	if err := s.setGeneral(); err != nil {
		return err
	}
	if err := s.confine(inv); err != nil {
		return err
	}
	return s.selectKey(inv)
}

// maxAttempts is how often a model request is made unless the user's settings
// say otherwise. Gemini CLI's own ten take four minutes and say nothing.
const maxAttempts = 3

// setGeneral limits the retries, and keeps Gemini CLI from installing newer
// versions of itself, which it does in a terminal.
func (s *settings) setGeneral() error {
	general, err := s.all.part("general")
	if err != nil {
		return err
	}
	if _, chosen := general["maxAttempts"]; !chosen {
		set(general, "maxAttempts", maxAttempts)
	}
	set(general, "enableAutoUpdate", false)
	s.all.set("general", general)
	return nil
}

// planTools change the approval mode. Where nobody can answer, a plan approves
// itself and lets every tool call through (0.61.0).
var planTools = []string{"enter_plan_mode", "exit_plan_mode"}

// confine takes away the tools with which the model would leave its approval
// mode.
func (s *settings) confine(inv registry.Invocation) error {
	if inv.Access == agent.AccessFull {
		return nil
	}
	return s.excludePlanTools()
}

func (s *settings) excludePlanTools() error {
	tools, err := s.all.part("tools")
	if err != nil {
		return err
	}
	var excluded []string
	if value, ok := tools["exclude"]; ok && json.Unmarshal(value, &excluded) != nil {
		return fmt.Errorf("tools.exclude is no list of names")
	}
	for _, name := range planTools {
		if !slices.Contains(excluded, name) {
			excluded = append(excluded, name)
		}
	}
	set(tools, "exclude", excluded)
	s.all.set("tools", tools)
	return nil
}

// distrust makes the settings those of a session without trust: whether the
// folder is trusted counts for all that Gemini CLI reads, also for agents of the
// repository, and there is no mode to go back to after a plan.
func (s *settings) distrust() error {
	security, err := s.all.part("security")
	if err != nil {
		return err
	}
	folders, err := security.part("folderTrust")
	if err != nil {
		return err
	}
	set(folders, "enabled", true)
	security.set("folderTrust", folders)
	s.all.set("security", security)
	return s.excludePlanTools()
}

// selectKey chooses the login by key where the user has chosen none: beside a
// base URL of one's own Gemini CLI would not find the key.
func (s *settings) selectKey(inv registry.Invocation) error {
	env := inv.Getenv
	if env("GEMINI_API_KEY") == "" || env("GOOGLE_GEMINI_BASE_URL") == "" ||
		env("GOOGLE_GENAI_USE_VERTEXAI") == "true" || env("GOOGLE_GENAI_USE_GCA") == "true" {
		return nil
	}
	security, err := s.all.part("security")
	if err != nil {
		return err
	}
	auth, err := security.part("auth")
	if err != nil {
		return err
	}
	if _, chosen := auth["selectedType"]; !chosen {
		set(auth, "selectedType", "gemini-api-key")
		security.set("auth", auth)
		s.all.set("security", security)
	}
	return nil
}

// write puts the settings into a private home.
func (s *settings) write(home *instructions.Home) error {
	context, err := s.all.part("context")
	if err != nil {
		return err
	}
	set(context, "fileName", s.names)
	s.all.set("context", context)
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
		return nil, fmt.Errorf("context.fileName is neither a name nor a list of names")
	}
	return slices.Clip(names), nil
}

// part returns the object at key; an empty one where there is none.
func (o object) part(key string) (object, error) {
	part := object{}
	if value, ok := o[key]; ok {
		if json.Unmarshal(value, &part) != nil || part == nil {
			return nil, fmt.Errorf("%q is no object", key)
		}
	}
	return part, nil
}

func (o object) set(key string, part object) { o[key] = encode(part) }

func set[T bool | int | string | []string](o object, key string, value T) { o[key] = encode(value) }

// encode returns value as JSON. These types cannot fail.
func encode[T object | bool | int | string | []string](value T) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
