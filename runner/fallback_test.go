package runner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

func TestFallback(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		call        []string
		env, stored string
		want        runner.Setting[[]string]
		warning     string
		err         string
	}{
		"nothing":         {},
		"call":            {call: []string{"beta", "alpha:local"}, env: "gamma", want: runner.Setting[[]string]{Value: []string{"beta", "alpha:local"}, Source: "call"}},
		"variable":        {env: " beta , gamma", stored: `["alpha"]`, want: runner.Setting[[]string]{Value: []string{"beta", "gamma"}, Source: "BUS_AGENT_FALLBACK"}},
		"preference":      {stored: `["gamma"]`, want: runner.Setting[[]string]{Value: []string{"gamma"}, Source: "bus-agent.fallback"}},
		"call: none":      {call: []string{"none"}, env: "gamma", want: runner.Setting[[]string]{Value: []string{}, Source: "call"}},
		"call: empty":     {call: []string{}, env: "gamma", want: runner.Setting[[]string]{Value: []string{}, Source: "call"}},
		"variable: none":  {env: "none", stored: `["alpha"]`, want: runner.Setting[[]string]{Value: []string{}, Source: "BUS_AGENT_FALLBACK"}},
		"none and others": {call: []string{"alpha", "none"}, err: `unknown runtime "none"`},
		"call: unknown":   {call: []string{"delta"}, err: `unknown runtime "delta"`},
		"unknown":         {stored: `["delta","beta"]`, want: runner.Setting[[]string]{Value: []string{"beta"}, Source: "bus-agent.fallback"}, warning: `fallback list (bus-agent.fallback): unknown runtime "delta" (known: `},
		"unknown variant": {env: "beta:far", want: runner.Setting[[]string]{Value: []string{}, Source: "BUS_AGENT_FALLBACK"}, warning: `fallback list (BUS_AGENT_FALLBACK): unknown runtime "beta:far"`},
		"malformed":       {stored: `["Delta"]`, err: `preference bus-agent.fallback: unknown runtime "Delta"`},
		"twice":           {env: "beta,beta", err: `BUS_AGENT_FALLBACK: runtime "beta" is listed twice`},
		"no list":         {stored: `"beta"`, err: `preference bus-agent.fallback: it is not a list of strings; set it again, or remove it with "bus-agent unset bus-agent.fallback"`},
	} {
		b := newBench(t)
		b.Environ = append(b.Environ, "BUS_AGENT_FALLBACK="+tt.env)
		if tt.stored != "" {
			b.Preferences = prefs{runner.KeyFallback: tt.stored}
		}
		got := b.Fallback(t.Context(), tt.call)
		err := got.Err
		if len(b.warnings) > 1 || !strings.HasPrefix(strings.Join(b.warnings, ""), tt.warning) {
			t.Errorf("%s: warnings %q, want %q", name, b.warnings, tt.warning)
		}
		if err != nil {
			got = runner.Setting[[]string]{}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (err != nil) != (tt.err != "") || err != nil && (!errors.Is(err, agent.ErrUsage) || !strings.HasPrefix(err.Error(), tt.err)) {
			t.Errorf("%s: error %v, want %q", name, err, tt.err)
		}
	}
}
