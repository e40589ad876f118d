package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// asker is a peer that can ask questions, and writes nothing when a call is canceled.
type asker struct {
	peer
	refuse error // of AnswerQuestions
}

func (p *asker) Answer(ctx context.Context, id string, d session.Decision) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.peer.Answer(ctx, id, d)
}

func (p *asker) AnswerQuestions(_ context.Context, id string, answers [][]string) error {
	if p.refuse != nil {
		return p.refuse
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = append(p.answers, fmt.Sprint(id, " ", answers))
	return nil
}

func (p *asker) asks(id string) {
	p.sink.Event(&agent.Event{Kind: agent.KindQuestion, ApprovalID: id, Text: "two things", Questions: []agent.Question{
		{Text: "Which way?", Options: []agent.Option{{Label: "left"}, {Label: "right"}}},
		{Text: "Which key?", FreeText: true, Secret: true},
	}})
}

// begin opens a session whose agent asks a question in its first turn.
func (p *asker) begin(t *testing.T, o session.Options) (*session.Session, *session.Turn) {
	t.Helper()
	s := openWith(t, p, &p.peer, o)
	t.Cleanup(func() { s.Stop(context.Background(), "") })
	turn := s.Send(session.Message{Text: "go"})
	<-p.sent
	p.asks("1")
	synctest.Wait()
	return s, turn
}

var leftAndKey = [][]string{{"left"}, {"k3y"}}

func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &asker{}
		var approved int
		var note string
		s, turn := p.begin(t, session.Options{
			Approve:  func(context.Context, session.Approval) session.Decision { approved++; return session.Accept },
			Answered: func(q session.QuestionRequest, answers [][]string) { note = q.Message(answers) },
		})
		open := s.Questions()
		if len(open) != 1 || open[0].ID != "1" || open[0].Text != "two things" || len(open[0].Questions) != 2 || s.State() != session.StateWaiting || len(s.Approvals()) != 0 {
			t.Fatalf("%+v, %v, %+v", open, s.State(), s.Approvals())
		}
		for _, wrong := range [][][]string{nil, {{"left"}}, {{"up"}, {"k"}}, {{"left"}, nil}} {
			if err := s.AnswerQuestions(t.Context(), "1", wrong); !errors.Is(err, agent.ErrUsage) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		if err := s.Answer(t.Context(), "1", session.Accept); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("a question is accepted: %v", err)
		}
		if err := s.AnswerQuestions(t.Context(), "1", leftAndKey); err != nil {
			t.Fatal(err)
		}
		if err := s.AnswerQuestions(t.Context(), "1", leftAndKey); !errors.Is(err, session.ErrTooLate) {
			t.Errorf("answered twice: %v", err)
		}
		p.finish()
		if _, err := turn.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if want := "Which way? left\nWhich key? (secret)"; p.answered() != "[1 [[left] [k3y]]]" || note != want || approved != 0 {
			t.Errorf("the agent gets %s, noted %q, %d approvals", p.answered(), note, approved)
		}
	})
}

// A question is declined when it is not answered, by whichever way.
func TestQuestionsAreDeclined(t *testing.T) {
	t.Parallel()
	ask := func(answers [][]string) func(context.Context, session.QuestionRequest) [][]string {
		return func(context.Context, session.QuestionRequest) [][]string { return answers }
	}
	for name, test := range map[string]struct {
		options session.Options
		after   time.Duration
		want    string
	}{
		"in time":             {session.Options{Ask: ask(leftAndKey)}, 0, "[1 [[left] [k3y]]]"},
		"no callback":         {session.Options{ApprovalTimeout: time.Minute}, time.Minute, "[1 decline]"},
		"by default":          {session.Options{}, session.DefaultApprovalTimeout, "[1 decline]"},
		"at once":             {session.Options{ApprovalTimeout: -1}, 0, "[1 decline]"},
		"no answer":           {session.Options{Ask: ask(nil)}, session.DefaultApprovalTimeout, "[1 decline]"},
		"an empty list":       {session.Options{Ask: ask([][]string{})}, 0, "[1 decline]"},
		"answers that do not": {session.Options{Ask: ask([][]string{{"up"}})}, 0, "[1 decline]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &asker{}
				s, _ := p.begin(t, test.options)
				if test.after > 0 {
					time.Sleep(test.after - 1)
					if s.State() != session.StateWaiting || p.answered() != "[]" {
						t.Errorf("state %s, the agent gets %s", s.State(), p.answered())
					}
					time.Sleep(time.Nanosecond)
					synctest.Wait()
				}
				if s.State() != session.StateRunning || p.answered() != test.want {
					t.Errorf("state %s, the agent gets %s", s.State(), p.answered())
				}
			})
		})
	}
}

// A callback can answer with its own context, which ends with the request.
func TestAskAnswersWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &asker{}
		var s *session.Session
		opened := make(chan struct{})
		ask := func(ctx context.Context, q session.QuestionRequest) [][]string {
			<-opened
			if err := s.Answer(ctx, q.ID, session.Decline); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return nil
		}
		s, _ = p.begin(t, session.Options{Ask: ask})
		close(opened)
		synctest.Wait()
		if p.answered() != "[1 decline]" || s.State() != session.StateRunning {
			t.Errorf("state %s, the agent gets %s", s.State(), p.answered())
		}
	})
}

// What the engine cannot express leaves the question open; another failure closes it.
func TestQuestionsThatTheEngineRefuses(t *testing.T) {
	t.Parallel()
	for refuse, state := range map[error]session.State{
		agent.Usagef("not a number"):   session.StateWaiting,
		errors.New("the pipe is gone"): session.StateRunning,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &asker{refuse: refuse}
			s, _ := p.begin(t, session.Options{})
			if err := s.AnswerQuestions(t.Context(), "1", leftAndKey); err != refuse || s.State() != state {
				t.Errorf("%v, state %s; want %s", err, s.State(), state)
			}
		})
	}
}

// An engine without questions has no way to answer one.
func TestQuestionsNeedAnEngineThatHasThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &asker{}
		s := open(t, &p.peer, session.Options{})
		defer s.Stop(t.Context(), "")
		s.Send(session.Message{Text: "go"})
		<-p.sent
		p.asks("1")
		if err := s.AnswerQuestions(t.Context(), "1", leftAndKey); !errors.Is(err, session.ErrUnsupported) {
			t.Error(err)
		}
		if err := s.Answer(t.Context(), "1", session.Decline); err != nil || p.answered() != "[1 decline]" {
			t.Errorf("%v, %s", err, p.answered())
		}
	})
}

// The answers of the user are given by number.
func ExampleQuestionRequest_Parse() {
	q := session.QuestionRequest{ID: "1", Questions: []agent.Question{
		{Text: "Which way?", Options: []agent.Option{{Label: "left"}, {Label: "right"}}},
		{Text: "What else?", Options: []agent.Option{{Label: "fast"}, {Label: "loud"}}, Multiple: true},
	}}
	fmt.Println(q.Parse([]string{"2", "1,2"}))
	fmt.Println(q.Parse([]string{"2"}))
	// Output:
	// [[right] [fast loud]] <nil>
	// [] the agent asks 2 questions; give as many answers, not 1
}
