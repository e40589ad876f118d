package control

import (
	"context"
	"fmt"

	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/policy"
)

// StoredPolicy returns the policy that the preference bus-agent.policy has, nil where it is
// not set. preferences may be nil.
func StoredPolicy(ctx context.Context, preferences runner.Preferences) (*policy.Policy, error) {
	if preferences == nil {
		return nil, nil
	}
	text, ok, err := preferences.Get(ctx, runner.KeyPolicy)
	if err != nil || !ok {
		return nil, err
	}
	p, err := policy.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("preference %s: %w", runner.KeyPolicy, err)
	}
	return p, nil
}
