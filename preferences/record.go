package preferences

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// ParseRecord returns value if it can be stored by [SetDefaultRecord]; any other is an
// agent.ErrUsage error.
func ParseRecord(value string) (string, error) {
	if !slices.Contains([]string{"off", "on", "required"}, value) {
		return "", agent.Usagef("record %q is not one of off, on, required", value)
	}
	return value, nil
}

// SetDefaultRecord stores whether runs are recorded: "off", "on" or "required". With
// "required", a run that cannot be recorded fails.
func SetDefaultRecord(ctx context.Context, value string) error {
	if _, err := ParseRecord(value); err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return setJSON(ctx, runner.KeyRecord, raw)
}
