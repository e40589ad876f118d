package acp_test

import (
	"path/filepath"
	"testing"

	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}` + "\n"))
	before := []sessiontest.Step{
		{Kind: sessiontest.Expect, Line: `{"id":1,"method":"initialize"}`},
		{Kind: sessiontest.Say, Line: `{"jsonrpc":"2.0","id":1,"result":` + greeting + `}`},
		{Kind: sessiontest.Expect, Line: `{"id":2,"method":"session/new"}`},
		{Kind: sessiontest.Say, Line: `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}`},
		{Kind: sessiontest.Expect, Line: `{"id":3,"method":"session/prompt"}`},
	}
	sessiontest.FuzzEngine(f, func() engine.Engine { return &acp.Engine{} }, before, filepath.Join("testdata", "*.ndjson"))
}
