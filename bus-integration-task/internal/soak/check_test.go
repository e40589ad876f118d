package soak

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	commitA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	commitB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// written returns a log of lines such as "bus#1 claimed by=x over=y lease=2 commit=z". An
// event comes a second after the one before it.
func written(t *testing.T, text string) (log []Entry) {
	t.Helper()
	for i, line := range strings.Split(text, ";") {
		words := strings.Fields(line)
		payload := map[string]any{"work_ref": words[0], "worker_id": "w"}
		if words[1] == "created" {
			payload["recipient"] = "dev"
		}
		for _, word := range words[2:] {
			name, value, _ := strings.Cut(word, "=")
			field := map[string]string{"by": "attempt_id", "over": "supersedes", "commit": "commit", "lease": "lease_seconds"}[name]
			if payload[field] = any(value); name == "lease" {
				payload[field] = json.Number(value)
			}
		}
		encoded, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		entry, _, err := parse(fmt.Appendf(nil, `{"id":"evt_%019d","name":"bus.task.%s","timestamp":%q,"payload":%s}`,
			i+1, words[1], time.Unix(int64(1000+i), 0).UTC().Format(time.RFC3339Nano), encoded))
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, entry)
	}
	return log
}

const goodLog = "bus#1 created;bus#2 created;bus#1 claimed by=A lease=2;bus#1 progress by=A commit=" + commitA +
	";bus#2 claimed by=B lease=2;bus#2 released by=B;bus#2 claimed by=C lease=2;bus#1 done by=A commit=" + commitA +
	";bus#3 created;bus#2 claimed by=D over=C lease=2;bus#2 blocked by=D;bus#2 reopened;bus#2 claimed by=E;bus#2 progress by=E commit=" + commitB +
	";bus#2 done by=E commit=" + commitB + ";bus#3 canceled"

// expectation is what others know of a log.
func expectation(log []Entry) Expectation {
	want := Expectation{Created: []string{"bus#1", "bus#2", "bus#3"}, Accepted: map[string]string{}, Seen: map[string][]string{}}
	for i, e := range log {
		want.Accepted[e.ID] = e.Name
		want.Seen["all"] = append(want.Seen["all"], e.ID)
		if i < 5 {
			want.Seen["some"] = append(want.Seen["some"], e.ID)
		}
	}
	return want
}

func TestGoodLogHasNoViolation(t *testing.T) {
	t.Parallel()
	log := written(t, goodLog)
	if found := Check(log, expectation(log)); len(found) > 0 {
		t.Errorf("%q", found)
	}
}

func TestSeededViolationsAreFound(t *testing.T) {
	t.Parallel()
	insert := func(at int, line string) func([]Entry) []Entry {
		return func(log []Entry) []Entry { // the IDs that the others know stay
			e := written(t, line)[0]
			e.ID, e.Time = log[at].ID[:len(log[at].ID)-3]+"999", log[at].Time
			for i := at + 1; i < len(log); i++ {
				log[i].ID = fmt.Sprintf("evt_%019d", 1000+i)
			}
			return slices.Insert(log, at+1, e)
		}
	}
	for name, c := range map[string]struct {
		change func([]Entry) []Entry
		want   string
		known  bool // by the expectation too
	}{
		"a second end":             {insert(7, "bus#1 done by=A"), "ended again", true},
		"an end of another":        {insert(6, "bus#2 failed by=B"), `failed of B, while "C" holds it`, true},
		"two claims at once":       {insert(6, "bus#2 claimed by=X"), `claimed by X over "" while "C" holds it`, true},
		"a claim within the lease": {insert(6, "bus#2 claimed by=X over=C"), "whose lease is 2s", true},
		"a claim of an ended task": {insert(7, "bus#1 claimed by=X"), "claimed by X", true},
		"a second creation":        {insert(7, "bus#1 created"), "created again", true},
		"a task without an end":    {func(log []Entry) []Entry { return log[:len(log)-1] }, "bus#3: evt_0000000000000000009: without an end", true},
		"a doubled commit": {func(log []Entry) []Entry {
			return append(log, written(t, strings.Repeat("bus#4 created;", 20)+"bus#4 claimed by=F;bus#4 progress by=F commit="+commitA+";bus#4 done by=F commit="+commitA)[19:]...)
		}, "doubled commit", true},
		"events out of order": {func(log []Entry) []Entry { log[2], log[3] = log[3], log[2]; return log }, "out of order", true},
		"a doubled event":     {func(log []Entry) []Entry { return slices.Insert(log, 3, log[3]) }, "out of order", true},
		"a lost task":         {func(log []Entry) []Entry { return append(log[:8:8], log[9:15]...) }, "bus#3: not in the log", true},
		"a lost event":        {func(log []Entry) []Entry { return slices.Delete(log, 6, 7) }, "evt_0000000000000000007: accepted as bus.task.claimed", false},
		"an event that a reader has missed": {func(log []Entry) []Entry { return log },
			"reader all: event 2 is evt_0000000000000000004", false},
		"events that a reader has seen in another order": {func(log []Entry) []Entry { return log },
			"reader all: event 4 is evt_0000000000000000006", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := written(t, goodLog)
			want := expectation(log)
			switch seen := want.Seen["all"]; name {
			case "an event that a reader has missed":
				want.Seen["all"] = slices.Delete(seen, 2, 3)
			case "events that a reader has seen in another order":
				seen[4], seen[5] = seen[5], seen[4]
			}
			log = c.change(log)
			if c.known {
				want = Expectation{Created: want.Created}
			}
			if found := strings.Join(Check(log, want), "\n"); !strings.Contains(found, c.want) {
				t.Errorf("found\n%s\nwithout %q", found, c.want)
			}
		})
	}
}

func TestSeededViolationsOfCommitsAreFound(t *testing.T) {
	t.Parallel()
	good := func() []Commit {
		return []Commit{
			{commitB, []string{commitA}, SubjectOf("bus#2"), []string{FileOf("bus#2")}},
			{commitA, []string{"0"}, SubjectOf("bus#1"), []string{FileOf("bus#1")}},
			{"0", nil, "begin", []string{"README"}},
		}
	}
	other := "cccccccccccccccccccccccccccccccccccccccc"
	for name, c := range map[string]struct {
		change func([]Commit) []Commit
		want   string
	}{
		"none":          {func(c []Commit) []Commit { return c }, ""},
		"a lost commit": {func(c []Commit) []Commit { return c[1:] }, "commit " + commitB + " of evt_0000000000000000015 is lost"},
		"a doubled commit": {func(c []Commit) []Commit {
			return append([]Commit{{other, []string{commitB}, c[0].Subject, c[0].Files}}, c...)
		}, "bus#2: +1 commits"},
		"a foreign commit":  {func(c []Commit) []Commit { return append([]Commit{{other, []string{commitB}, "mine", nil}}, c...) }, "mine: +1 commits"},
		"a merge":           {func(c []Commit) []Commit { c[0].Parents = append(c[0].Parents, other); return c }, "its parents are"},
		"another file":      {func(c []Commit) []Commit { c[0].Files = c[1].Files; return c }, "it changes"},
		"of another task":   {func(c []Commit) []Commit { c[0].Subject, c[1].Subject = c[1].Subject, c[0].Subject; return c }, "is of task"},
		"two commits of it": {func(c []Commit) []Commit { c[0].Subject = c[1].Subject; return c }, "bus#1: +1 commits"},
	} {
		found := strings.Join(CheckCommits(written(t, goodLog), func(string) bool { return true }, c.change(good())), "\n")
		if !strings.Contains(found, c.want) || c.want == "" && found != "" {
			t.Errorf("%s: found\n%s\nwithout %q", name, found, c.want)
		}
	}
}
