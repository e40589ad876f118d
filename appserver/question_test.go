package appserver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// userInput is a request for the input of the user.
const userInput = `{"id":7,"method":"item/tool/requestUserInput","params":{"threadId":"t","turnId":"1","itemId":"c","isBlocking":true,"questions":[` +
	`{"id":"way","header":"Way","question":"Which way?","isOther":true,"isSecret":false,"options":[{"label":"left","description":"shorter"},{"label":"right","description":""}]},` +
	`{"id":"key","header":"Key","question":"Which key?","isOther":false,"isSecret":true,"options":null}]}}`

// asked plays a request of the server and returns the questions that reach the user and
// what the server gets.
func asked(t *testing.T, request string, o session.Options) (asked []agent.Question, sent string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		steps := append(handshake(), expect(startTurn), say(turn1), say(begun1), say(request), expect(`{"id":7,"result":{}}`), say(ended1))
		peer := sessiontest.Start(steps)
		o.Events = func(e *agent.Event) error {
			if e.Kind == agent.KindQuestion {
				asked = e.Clone().Questions
			}
			return nil
		}
		s, err := session.Open(t.Context(), "test", &appserver.Engine{}, peer, peer.Transport(), engine.Start{}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(context.Background(), "")
		if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		sent = strings.Join(peer.Sent(), "\n")
	})
	return asked, sent
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	want := []agent.Question{
		{Header: "Way", Text: "Which way?", Options: []agent.Option{{Label: "left", Description: "shorter"}, {Label: "right"}}, FreeText: true},
		{Header: "Key", Text: "Which key?", FreeText: true, Secret: true},
	}
	for name, test := range map[string]struct {
		answers [][]string
		want    string
	}{
		"answered": {[][]string{{"left"}, {"k3y"}}, `{"id":7,"result":{"answers":{"key":{"answers":["k3y"]},"way":{"answers":["left"]}}}}`},
		"declined": {[][]string{}, `{"id":7,"result":{"answers":{}}}`},
	} {
		got, sent := asked(t, userInput, session.Options{Ask: func(context.Context, session.QuestionRequest) [][]string { return test.answers }})
		if diff := cmp.Diff(want, got); diff != "" || !strings.HasSuffix(sent, test.want) {
			t.Errorf("%s: the server gets %s\n%s", name, sent, diff)
		}
	}
}

// A request that has no questions is declined without the user.
func TestQuestionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, request := range []string{
		`{"id":7,"method":"item/tool/requestUserInput","params":{"questions":[]}}`,
		`{"id":7,"method":"item/tool/requestUserInput","params":{"questions":"x"}}`,
		`{"id":7,"method":"item/tool/requestUserInput","params":{"questions":[{"id":"a","question":"cu`,
	} {
		got, sent := asked(t, request, session.Options{})
		if want := `{"id":7,"result":{"answers":{}}}`; got != nil || !strings.HasSuffix(sent, want) {
			t.Errorf("%s: asked %+v, the server gets %s", request, got, sent)
		}
	}
}
