package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// prepareSession makes the home of a session.
func prepareSession(_ context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	return arrange(inv, w, !inv.TrustWorkspace, func(s *settings) error {
		if inv.TrustWorkspace {
			return nil
		}
		return s.exclude(planTools) // the mode does not change after a plan
	})
}

// deliverInMessage puts the files of chain before the first message, unless the resumed
// session has them already. It returns the size of their text.
func deliverInMessage(inv registry.Invocation, chain instructions.Chain, setup *registry.Setup, home *instructions.Home) (size int, err error) {
	if err := setup.PrependInstructions(chain, instructions.MaxBytes); err != nil || setup.Prefix == "" {
		return 0, err
	}
	size = len(setup.Prefix)
	if inv.Resume == "" && !inv.Continue {
		return size, nil
	}
	files, err := home.Glob(".gemini/tmp/*/chats/*.jsonl")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		f, err := home.Open(file)
		if err != nil {
			return 0, err
		}
		sent := wasSent(io.LimitReader(f, maxSession), setup.Prefix)
		f.Close()
		if sent {
			setup.Prefix = ""
			break
		}
	}
	return size, nil
}

// A record is a line of a session file.
type record struct {
	Type    string `json:"type"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// wasSent reports whether a message of the user in a session file begins with text.
func wasSent(session io.Reader, text string) bool {
	for lines := json.NewDecoder(session); ; {
		var line json.RawMessage
		if lines.Decode(&line) != nil {
			return false // Gemini CLI stops here too
		}
		var r record
		if json.Unmarshal(line, &r) != nil || r.Type != "user" {
			continue
		}
		for _, part := range r.Content {
			if strings.HasPrefix(part.Text, text) {
				return true
			}
		}
	}
}

// holdsNothing reports whether a session file identifies its session and has no
// messages.
func holdsNothing(session io.Reader) bool {
	for lines, n := json.NewDecoder(session), 0; ; n++ {
		var line map[string]json.RawMessage
		if err := lines.Decode(&line); err != nil {
			return errors.Is(err, io.EOF) && n > 0
		}
		_, names := line["sessionId"]
		_, sets := line["$set"]
		if !names && !sets {
			return false
		}
	}
}

// tidyChats removes the files of sessions without messages, such as the one that Gemini
// CLI creates at its start. It renames files of this minute to an earlier one: when the
// CLI loads a session, it creates a new file, which would otherwise overwrite an old one
// of the same name.
func tidyChats(home *instructions.Home, now time.Time) error {
	files, err := home.Glob(".gemini/tmp/*/chats/session-*.jsonl")
	for _, file := range files {
		if err != nil {
			break
		}
		err = tidyChat(home, file, now)
	}
	return err
}

// How much of a session file is read: maxSession bytes to find a message, maxEmpty to
// find out whether it has any.
const (
	maxSession = 64 << 20
	maxEmpty   = 16 << 10
)

func tidyChat(home *instructions.Home, file string, now time.Time) error {
	f, err := home.Open(file)
	if errors.Is(err, instructions.ErrNotRegular) {
		return nil // not a session; it is not kept
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	empty := err == nil && info.Size() <= maxEmpty && holdsNothing(f)
	if err := f.Close(); err != nil {
		return err
	}
	if empty {
		return home.RemoveFile(file)
	}
	dir, name := path.Split(file)
	minute := now.UTC().Truncate(time.Minute)
	if created := createdAt(name); created.IsZero() || created.Before(minute) {
		return nil
	}
	return home.Rename(file, dir+minute.Add(-time.Minute).Format(sessionTime)+name[len(sessionTime):])
}

// sessionTime is the format of the time in the name of a session file, in UTC.
const sessionTime = "session-2006-01-02T15-04"

// createdAt returns when the session of a file was created, to the minute; zero if its
// name does not have the time.
func createdAt(name string) time.Time {
	created, err := time.Parse(sessionTime, name[:min(len(name), len(sessionTime))])
	if err != nil {
		return time.Time{}
	}
	return created
}
