package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pending bounds the lines that wait for a client that reads slowly. Further ones are
// left out, so that the client cannot slow down the agent.
const pending = 64

// progress returns a function that reports lines as the progress of a call, and one that
// returns when all are sent. Without a token of the client, nothing is sent.
func progress(ctx context.Context, req *mcp.CallToolRequest) (report func(string), end func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil, func() {}
	}
	lines, done := make(chan string, pending), make(chan struct{})
	go func() {
		defer close(done)
		count := 0.0
		for line := range lines {
			count++
			// Without the client, the call ends by itself.
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: count, Message: line})
		}
	}()
	return func(line string) {
			select {
			case lines <- line:
			default:
			}
		}, func() {
			close(lines)
			select {
			case <-done:
			case <-ctx.Done():
			}
		}
}
