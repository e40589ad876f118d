package runner

import (
	"encoding/hex"
	"strings"
)

// The preference keys bus-agent reads.
const (
	KeyRuntime                 = "bus-agent.runtime"
	KeyOrder                   = "bus-agent.order"
	KeyEnable                  = "bus-agent.enable"
	KeyDisable                 = "bus-agent.disable"
	KeyFallback                = "bus-agent.fallback"
	KeyModel                   = "bus-agent.model"
	KeyReasoningEffort         = "bus-agent.model_reasoning_effort"
	KeyVerbosity               = "bus-agent.model_verbosity"
	KeyReasoningEffortForModel = "bus-agent.model_reasoning_effort_for_model"
	KeyVerbosityForModel       = "bus-agent.model_verbosity_for_model"
	KeyOutputFormat            = "bus-agent.output_format"
	KeyTimeout                 = "bus-agent.timeout"
	// KeyUserConfig sets whether agents use the user's configuration of their CLIs:
	// "on" or "off"; KeyUserConfigForRuntime is the prefix of those of one runtime.
	KeyUserConfig           = "bus-agent.user-config"
	KeyUserConfigForRuntime = "bus-agent.user-config-for-runtime"
	// KeyRuntimes is the prefix of runtimes described in JSON.
	KeyRuntimes = "bus-agent.runtimes"
	// KeyHooks lists the hooks of sessions; see package session.
	KeyHooks = "bus-agent.hooks"
	// KeyPolicy is the policy of sessions; see package session/policy.
	KeyPolicy = "bus-agent.policy"
	// KeyMCP is the description of MCP servers that [agent.ParseMCPServers] reads.
	KeyMCP = "bus-agent.mcp"
	// KeyRecord sets whether runs are recorded: "on", "off" or "required".
	KeyRecord = "bus-agent.record"
)

// A Source of a setting is an environment variable or a preference key. Exactly one of
// Env and Key is set.
type Source struct {
	Env string
	Key string
	// ForModel appends the resolved model to Key; see [KeyForModel].
	ForModel bool
	// ForRuntime appends the ID of the runtime to Key.
	ForRuntime bool
	// Runtime limits the source to the runtime with this ID.
	Runtime string
}

// String returns the variable or the key.
func (s Source) String() string {
	if s.Env != "" {
		return s.Env
	}
	return s.Key
}

// Sources lists the sources of each setting after the call itself; the first that is set
// wins. Callers with their own variables or preferences put those in front.
type Sources struct {
	Runtime         []Source
	Order           []Source
	Enable          []Source
	Disable         []Source
	Fallback        []Source
	Model           []Source
	ReasoningEffort []Source
	Verbosity       []Source
	OutputFormat    []Source
	Timeout         []Source
	UserConfig      []Source
}

// BusAgent returns the sources of bus-agent, the default of a Runner.
func BusAgent() Sources { return callerSources("", "", "") }

// BusDev returns the sources of bus-dev: BUS_DEV_AGENT before BUS_AGENT and
// bus-dev.agent before bus-agent.runtime; the other settings likewise.
func BusDev() Sources { return callerSources("BUS_DEV_", "bus-dev.", "agent") }

// BusRun returns the sources of bus-run, on the same pattern as [BusDev].
func BusRun() Sources { return callerSources("BUS_RUN_", "bus-run.", "agent") }

// callerSources puts the variables and keys of one caller before bus-agent's.
// All variables come before all keys.
func callerSources(envPrefix, keyPrefix, runtimeKey string) Sources {
	list := func(env, key string, more ...Source) []Source {
		var s []Source
		if envPrefix != "" && env != "" {
			s = append(s, Source{Env: envPrefix + strings.TrimPrefix(env, "BUS_AGENT_")})
		}
		if env != "" {
			s = append(s, Source{Env: env})
		}
		s = append(s, more...)
		if keyPrefix != "" {
			s = append(s, Source{Key: keyPrefix + strings.TrimPrefix(key, "bus-agent.")})
		}
		return append(s, Source{Key: key})
	}
	forModel := func(env, key string) []Source {
		var variables, models, plain []Source
		for _, s := range list(env, key) {
			if s.Env != "" {
				variables = append(variables, s)
				continue
			}
			models = append(models, Source{Key: s.Key + "_for_model", ForModel: true})
			plain = append(plain, s)
		}
		// One caller's keys stay together: its per-model key, then its plain
		// one, then those of bus-agent.
		out := variables
		for i := range plain {
			out = append(out, models[i], plain[i])
		}
		return out
	}

	s := Sources{
		Order:    []Source{{Env: "BUS_AGENT_ORDER"}, {Key: KeyOrder}},
		Enable:   []Source{{Env: "BUS_AGENT_ENABLE"}, {Key: KeyEnable}},
		Disable:  []Source{{Env: "BUS_AGENT_DISABLE"}, {Key: KeyDisable}},
		Fallback: []Source{{Env: "BUS_AGENT_FALLBACK"}, {Key: KeyFallback}},
		// A Cursor model name means nothing to the other runtimes.
		Model:           list("BUS_AGENT_MODEL", KeyModel, Source{Env: "CURSOR_AGENT_MODEL", Runtime: "cursor"}),
		ReasoningEffort: forModel("BUS_AGENT_MODEL_REASONING_EFFORT", KeyReasoningEffort),
		Verbosity:       forModel("BUS_AGENT_MODEL_VERBOSITY", KeyVerbosity),
		OutputFormat:    list("BUS_AGENT_OUTPUT_FORMAT", KeyOutputFormat, Source{Env: "CURSOR_AGENT_OUTPUT_FORMAT"}),
		Timeout:         list("BUS_AGENT_TIMEOUT", KeyTimeout, Source{Env: "CURSOR_AGENT_TIMEOUT"}),
	}
	for _, source := range list("BUS_AGENT_USER_CONFIG", KeyUserConfig) {
		if source.Key != "" { // that of one runtime first
			s.UserConfig = append(s.UserConfig, Source{Key: source.Key + "-for-runtime", ForRuntime: true})
		}
		s.UserConfig = append(s.UserConfig, source)
	}
	s.Runtime = []Source{{Env: "BUS_AGENT"}, {Key: KeyRuntime}}
	if envPrefix != "" {
		s.Runtime = []Source{{Env: envPrefix + "AGENT"}, {Env: "BUS_AGENT"}, {Key: keyPrefix + runtimeKey}, {Key: KeyRuntime}}
	}
	return s
}

// KeyForModel returns the preference key of a per-model setting: prefix, a dot
// and the model. A model that is not a valid key path, or begins with "hex.", is
// written as "hex." and the lower-case hexadecimal form of its UTF-8.
func KeyForModel(prefix, model string) string {
	if isKeyPath(model) && !strings.HasPrefix(model, "hex.") {
		return prefix + "." + model
	}
	return prefix + ".hex." + hex.EncodeToString([]byte(model))
}

// ModelOfKey returns the model of a key that [KeyForModel] made, from the end of the key
// after prefix and a dot.
func ModelOfKey(end string) string {
	if name, err := hex.DecodeString(strings.TrimPrefix(end, "hex.")); err == nil && KeyForModel("", string(name)) == "."+end {
		return string(name)
	}
	return end
}

// isKeyPath reports whether s is a preference key path: segments of
// [a-z0-9_-] joined by dots.
func isKeyPath(s string) bool {
	for segment := range strings.SplitSeq(s, ".") {
		if segment == "" || strings.Trim(segment, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			return false
		}
	}
	return true
}
