//lint:file-ignore SA4006 the page leaves out what handles the errors

package control_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// The functions below have the Go code of docs/sessions.md, so that it compiles.
var _ = []any{pageManager, pageClient}

func pageManager(ctx context.Context) (any, error) {
	m := &control.Manager{Serve: true}
	defer m.Close(ctx, "done")
	h, err := m.Start(ctx, control.StartOptions{
		Name:     "review",
		Settings: control.Settings{Runtime: "claude", Access: agent.AccessRead, TurnTimeout: time.Hour},
	})
	turn, err := m.Send(h, control.Message{Text: "What does this project do?"})
	result, err := turn.Wait(ctx)
	return result, err
}

func pageClient(ctx context.Context) (any, error) {
	var client control.Client
	e, err := client.Find("review")
	result, err := client.Ask(ctx, e, control.Message{Text: "Run the tests"}, control.Watcher{})

	err = client.Watch(ctx, e, control.WatchOptions{Until: session.StateWaiting}, control.Watcher{})
	st, err := client.Show(ctx, e)
	err = client.Answer(ctx, e, st.Approvals[0].ID, session.Accept)
	err = client.AnswerQuestions(ctx, e, st.Questions[0].ID, [][]string{{"left"}})
	return result, err
}

func TestPageShowsCodeThatCompiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/sessions.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("page_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## From Go\n")
	section, _, _ = strings.Cut(section, "\n## ")
	found := 0
	for part := range strings.SplitSeq(section, "\n\n") {
		if !strings.HasPrefix(part, "    ") {
			continue
		}
		found++
		var block strings.Builder
		for line := range strings.Lines(part + "\n") {
			line = strings.TrimPrefix(line, "    ")
			indent := len(line) - len(strings.TrimLeft(line, " "))
			block.WriteString(strings.Repeat("\t", 1+indent/4) + line[indent:])
		}
		if !strings.Contains(string(code), block.String()) {
			t.Errorf("docs/sessions.md has code that this file does not have:\n%s", block.String())
		}
	}
	if found == 0 {
		t.Error("no code was found")
	}
}
