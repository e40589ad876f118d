package preferences

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-preferences/pkg/preferences"
)

// SetDefaultOrder stores the order in which runtimes are considered, by ID. The list
// is not empty and has no duplicates; Unset restores the alphabetical order. The
// caller checks that the runtimes exist.
func SetDefaultOrder(ctx context.Context, ids []string) error {
	return writeList(ctx, runner.KeyOrder, ids)
}

// SetDefaultEnable stores the runtimes that may be used, under the rules of
// [SetDefaultOrder]. Unset allows all of them.
func SetDefaultEnable(ctx context.Context, ids []string) error {
	return writeList(ctx, runner.KeyEnable, ids)
}

// SetDefaultDisable stores the runtimes that may not be used, under the rules
// of [SetDefaultOrder]. It wins over the enabled ones.
func SetDefaultDisable(ctx context.Context, ids []string) error {
	return writeList(ctx, runner.KeyDisable, ids)
}

// SetDefaultFallback stores the runtimes that are tried after the first, in order, by
// token: variants are allowed. The list is not empty and has no duplicates; Unset
// turns fallback off. The caller checks that the runtimes exist.
func SetDefaultFallback(ctx context.Context, tokens []string) error {
	return writeTokens(ctx, runner.KeyFallback, tokens, parseToken)
}

func writeList(ctx context.Context, key string, ids []string) error {
	return writeTokens(ctx, key, ids, func(id string) (string, error) {
		if !isID(id) {
			return "", agent.Usagef("runtime %q: the name must match [a-z][a-z0-9-]*; variants are not listed", id)
		}
		return id, nil
	})
}

// writeTokens stores a list of names that parse accepts.
func writeTokens(ctx context.Context, key string, tokens []string, parse func(string) (string, error)) error {
	if len(tokens) == 0 {
		return agent.Usagef("the list of runtimes is empty; unset %s to have none", key)
	}
	for i, token := range tokens {
		if _, err := parse(token); err != nil {
			return err
		}
		if slices.Contains(tokens[:i], token) {
			return agent.Usagef("runtime %q is listed twice", token)
		}
	}
	raw, err := json.Marshal(tokens)
	if err != nil {
		return err
	}
	return setJSON(ctx, key, raw)
}

// SetRuntimeDefinition stores the description of a runtime that needs no Go code. It
// is one JSON object without repeated keys; the caller checks that it describes a
// runtime.
func SetRuntimeDefinition(ctx context.Context, id string, definition json.RawMessage) error {
	if !isID(id) {
		return agent.Usagef("runtime %q: the name must match [a-z][a-z0-9-]*", id)
	}
	if err := checkObject(definition); err != nil {
		return agent.Usagef("definition of runtime %s: %w", id, err)
	}
	return setJSON(ctx, runner.KeyRuntimes+"."+id, definition)
}

// SetDefaultHooks stores the hooks of sessions: a JSON list, which the caller checks.
func SetDefaultHooks(ctx context.Context, list json.RawMessage) error {
	return setJSON(ctx, runner.KeyHooks, list)
}

// SetDefaultPolicy stores the policy of sessions: a JSON object, which the caller checks.
func SetDefaultPolicy(ctx context.Context, policy json.RawMessage) error {
	return setJSON(ctx, runner.KeyPolicy, policy)
}

// SetDefaultMCPServers stores the MCP servers of agents: a JSON object, which the caller
// checks.
func SetDefaultMCPServers(ctx context.Context, servers json.RawMessage) error {
	return setJSON(ctx, runner.KeyMCP, servers)
}

// setJSON stores a value.
func setJSON(ctx context.Context, key string, raw json.RawMessage) error {
	if err := checkLocation(); err != nil {
		return err
	}
	return preferences.SetJSON(ctx, key, raw)
}

// checkObject returns an error unless raw is one JSON object in UTF-8 that
// repeats no key at any level.
func checkObject(raw []byte) error {
	switch err := json.Unmarshal(raw, new(json.RawMessage)); {
	case err != nil:
		return err
	case !utf8.Valid(raw):
		return errors.New("not valid UTF-8")
	case bytes.TrimSpace(raw)[0] != '{':
		return errors.New("not a JSON object")
	}
	return jsonline.CheckNames(raw, nil)
}
