package streamjson_test

import (
	"context"
	"fmt"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
	"github.com/busdk/bus-agent/session/streamjson"
)

func ExampleEngine() {
	peer := sessiontest.Start(append(greeting(), expect(userLine), say(one), say(result)))
	ctx := context.Background()
	e := &streamjson.Engine{Decoder: claude.Runtime().Decoder}
	s, err := session.Open(ctx, "my-runtime", e, peer, peer.Transport(), engine.Start{}, session.Options{
		Events: func(e *agent.Event) error { fmt.Println(e.Kind); return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop(ctx, "done")
	turn, err := s.Send(session.Message{Text: "Hello"}).Wait(ctx)
	fmt.Println(turn.Text, err)
	// Output:
	// text
	// result
	// one <nil>
}
