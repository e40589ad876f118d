package described

import (
	"testing"

	"github.com/busdk/bus-agent/agent"
)

const failures = `"failures":[
	{"kind":"authentication","exit_codes":[41],"contains":["Invalid API key"],"answers":["Please log in"]},
	{"kind":"quota","contains":["429","Straße"]},
	{"answers":["Error: "]}]`

func TestFailuresOfADefinition(t *testing.T) {
	t.Parallel()
	rt := described(t, failures)
	for _, c := range []struct {
		exit agent.ExitError
		want agent.Failure
	}{
		{agent.ExitError{Code: 1}, ""},
		{agent.ExitError{Code: 41}, agent.FailureAuthentication},
		{agent.ExitError{Code: 1, Reason: "HTTP 429"}, agent.FailureQuota},
		{agent.ExitError{Code: 1, Stderr: "fatal: INVALID api KEY\n"}, agent.FailureAuthentication},
		{agent.ExitError{Code: 1, Stderr: "straße"}, agent.FailureQuota},
		{agent.ExitError{Code: 1, Stderr: "STRAẞE"}, ""},
		{agent.ExitError{Code: 41, Reason: "HTTP 429"}, agent.FailureAuthentication},
	} {
		if got := rt.ExitFailure(&c.exit); got != c.want {
			t.Errorf("%+v is %q, want %q", c.exit, got, c.want)
		}
	}
	// What the output's own rules know comes after.
	rt = described(t, `"output":"ndjson:known",`+failures)
	for code, want := range map[int]agent.Failure{41: agent.FailureAuthentication, 2: agent.FailureQuota} {
		if got := rt.ExitFailure(&agent.ExitError{Code: code}); got != want {
			t.Errorf("exit code %d is %q, want %q", code, got, want)
		}
	}
}

func TestAnswersOfADefinitionThatAreFailures(t *testing.T) {
	t.Parallel()
	if described(t, "").AnswerFailure != nil {
		t.Error("answers are checked without a reason")
	}
	for _, c := range []struct {
		members, answer string
		failure         agent.Failure
		failed          bool
	}{
		{failures, "", "", false},
		{failures, "All good. Please log in.", "", false},
		{failures, "\n Please log in first", agent.FailureAuthentication, true},
		{failures, "Error: no", "", true},
		{`"silence_fails":true`, " \n", "", true},
		{`"silence_fails":true`, "x", "", false},
	} {
		failure, failed := described(t, c.members).AnswerFailure(c.answer)
		if failure != c.failure || failed != c.failed {
			t.Errorf("%.30s: the answer %q is %q %v, want %q %v", c.members, c.answer, failure, failed, c.failure, c.failed)
		}
	}
}
