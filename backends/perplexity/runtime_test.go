package perplexity

import (
	"testing"

	"github.com/busdk/bus-agent/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{Runtime: Runtime(), Lines: backendtest.Lines{
		// A run is one message; there are no sessions.
		Text: `{"type":"start","agent":"bus-agent-rest","provider":"perplexity","model":"m","access":"write","endpoint":"https://example.com"}
{"type":"text","text":"{text}\n"}`,
		Retry:   `{"type":"retry","text":"{text}","attempt":1,"max_attempts":5,"wait_seconds":1,"status":429,"failure":"quota"}`,
		Success: `{"type":"result","finish_reason":"stop"}`,
		Failure: `{"type":"result","error":"{text}"}`,
		Unknown: `{"type":"hologram"}`,
	}})
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	backendtest.Transcripts(t, Runtime(), "testdata")
}
