package preferences

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-preferences/pkg/preferences"
)

// SetDefaultRecord stores whether runs are recorded: "off", "on" or "required". With
// "required", a run that cannot be recorded fails.
func SetDefaultRecord(ctx context.Context, word string) error {
	if !slices.Contains([]string{"off", "on", "required"}, word) {
		return agent.Usagef("record %q is not one of off, on, required", word)
	}
	raw, err := json.Marshal(word)
	if err != nil {
		return err
	}
	if err := checkLocation(); err != nil {
		return err
	}
	return preferences.SetJSON(ctx, runner.KeyRecord, raw)
}
