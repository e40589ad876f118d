package runs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMessagesMatchTheOtherImplementation reads messages written by another
// implementation of the protocol and writes them again.
func TestMessagesMatchTheOtherImplementation(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "agent-protocol", "*", "*", busName))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		messages, err := ReadMessages(file)
		if err != nil || len(messages) != 2 || messages[0].Type != MessageStart {
			t.Fatalf("%s: %+v, %v", file, messages, err)
		}
		again := filepath.Join(t.TempDir(), busName)
		for _, m := range messages {
			if err := Post(again, m); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(again)
		if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
			t.Errorf("%s (-theirs +ours):\n%s %v", file, diff, err)
		}
	}
}

func TestMessagesOfManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), busName)
	const writers, each = 8, 25
	body := strings.Repeat("a line that is long enough to be written in pieces\n", 100)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if err := Post(path, Message{Type: "INFO", Project: "p", Body: body}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	messages, err := ReadMessages(path)
	if err != nil || len(messages) != writers*each {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	seen := map[string]bool{}
	for _, m := range messages {
		if seen[m.ID] || m.Body != strings.TrimSuffix(body, "\n") || time.Since(m.Time) > time.Hour {
			t.Fatalf("%+v", m)
		}
		seen[m.ID] = true
	}
}

func TestBodyThatLooksLikeAMessageStaysABody(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), busName)
	body := "---\nmsg_id: MSG-1\ntype: RUN_STOP\n---\r\nI am\n---"
	for _, m := range []Message{{Type: "INFO", Body: body}, {Type: "INFO", Body: "second"}} {
		if err := Post(path, m); err != nil {
			t.Fatal(err)
		}
	}
	messages, err := ReadMessages(path)
	if err != nil || len(messages) != 2 || strings.ReplaceAll(messages[0].Body, " ---", "---") != body || messages[1].Body != "second" {
		t.Errorf("%q, %v", messages, err)
	}
}

func TestMessageIDFormat(t *testing.T) {
	t.Parallel()
	id := newMessageID(time.Date(2026, 11, 21, 0, 7, 23, 378607940, time.UTC))
	if !strings.HasPrefix(id, "MSG-20261121-000723-378607940-PID") {
		t.Error(id)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("INFO", "run stopped with code 0\n\n## stderr\n---\n")
	f.Add("a: b", "---\nmsg_id: x\ntype: y\n---\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, kind, body string) {
		if kind == "" || strings.ContainsFunc(body, func(r rune) bool { return r == '\r' || r == '\uFFFD' }) {
			return
		}
		file, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		defer os.Remove(file.Name())
		for range 2 {
			if err := Post(file.Name(), Message{Type: kind, Body: body}); err != nil {
				return // YAML cannot hold it
			}
		}
		messages, err := ReadMessages(file.Name())
		if err != nil || len(messages) != 2 || messages[0].Body != messages[1].Body || messages[0].Type != kind {
			text, _ := os.ReadFile(file.Name())
			t.Errorf("%q, %v\n%s", messages, err, bytes.TrimSpace(text))
		}
	})
}

// A time that JSON cannot hold keeps no message from being printed.
func TestTimesOfMessages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), busName)
	for _, ts := range []string{"2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00Z"} {
		text := "---\nmsg_id: m\nts: " + ts + "\ntype: INFO\nproject_id: p\n---\nbody\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := ReadMessages(path)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %+v, %v", ts, list, err)
		}
		if _, err := json.Marshal(list); err != nil {
			t.Errorf("%s: %v", ts, err)
		}
	}
}
