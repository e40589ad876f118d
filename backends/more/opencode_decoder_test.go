package more

import (
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
)

// opencode continues after a step with a tool call, whatever reason the provider gives.
func TestOpencodeResultIsTheEndOfTheTurn(t *testing.T) {
	t.Parallel()
	const (
		start  = `{"type":"step_start","sessionID":"s","part":{}}`
		tool   = `{"type":"tool_use","sessionID":"s","part":{"callID":"c","tool":"read","state":{"status":"completed"}}}`
		search = `{"type":"tool_use","sessionID":"s","part":{"callID":"c","tool":"search","state":{"status":"completed"},"metadata":{"providerExecuted":true}}}`
		finish = `{"type":"step_finish","sessionID":"s","part":{"reason":"REASON"}}`
		broken = `{"type":"error","sessionID":"s","error":{"name":"APIError"}}`
	)
	for name, c := range map[string]struct {
		lines  string
		reason string
		want   string // the results and the numbers of background tasks
	}{
		"an answer":                   {start + finish, "stop", "done"},
		"tool calls":                  {start + tool + finish, "tool-calls", ""},
		"tool calls, another reason":  {start + tool + finish, "stop", ""},
		"a tool of the provider":      {start + search + finish, "stop", "done"},
		"an unknown reason":           {start + finish, "unknown", ""},
		"an answer after a tool call": {start + tool + finish + start + finish, "stop", "done"},
		"an answer that is too long":  {start + finish, "length", "failed"},
		"a call that is too long":     {start + tool + finish, "length", ""},
		"a filtered answer":           {start + finish, "content-filter", "failed"},
		"compaction":                  {start + finish + start + finish, "stop", "done 1 0 done"},
		"compaction and a tool call":  {start + finish + start + tool + finish + start + finish, "stop", "done 1 0 done"},
		"failed compaction":           {start + finish + start + broken, "stop", "done 1 0 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d opencodeDecoder
			var got []string
			for line := range strings.SplitSeq(strings.ReplaceAll(strings.ReplaceAll(c.lines, "}{", "}\n{"), "REASON", c.reason), "\n") {
				events, known := d.line([]byte(line), nil)
				if !known {
					t.Errorf("unknown line %s", line)
				}
				for _, e := range events {
					switch {
					case e.Kind == agent.KindResult && e.Failed:
						got = append(got, "failed")
					case e.Kind == agent.KindResult:
						got = append(got, "done")
					case e.Background != nil:
						got = append(got, string(rune('0'+*e.Background)))
					}
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}
