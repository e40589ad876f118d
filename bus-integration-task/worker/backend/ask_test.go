package backend_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/structured"

	"github.com/busdk/bus-integration-task/worker/backend"
)

func TestAskJSONRetriesOnce(t *testing.T) {
	t.Parallel()
	schema, err := structured.Compile([]byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	r := newBench(t).start(backend.Attempt{Prompt: prompt("say done")})
	<-r.Done()
	if got, err := backend.AskJSON(t.Context(), r, prompt(`say {"n":1}`), schema); string(got) != `{"n":1}` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	// The retry has no steps, so the stub answers nothing.
	_, err = backend.AskJSON(t.Context(), r, prompt(`say {"n":"one"}`), schema)
	if _, ok := errors.AsType[structured.Violations](err); !ok || !strings.HasPrefix(err.Error(), "the answer is still invalid after one retry: ") {
		t.Errorf("%v", err)
	}
	r.finish(backend.Completed)
	if _, err := backend.AskJSON(t.Context(), r, "x", schema); !errors.Is(err, backend.ErrOver) {
		t.Errorf("%v", err)
	}
}
