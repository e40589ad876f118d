package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// prepareSession gives a session its home.
func prepareSession(_ context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	return arrange(inv, w, !inv.TrustWorkspace)
}

// deliverInMessage puts the AGENTS.md files at the head of the first message,
// unless the session that is resumed has them in one already.
func deliverInMessage(inv registry.Invocation, w *instructions.Workspace, setup *registry.Setup, home *instructions.Home) error {
	if err := setup.PrependInstructions(w.Chain(), instructions.MaxBytes); err != nil || setup.Prefix == "" {
		return err
	}
	if inv.Resume != "" {
		files, err := home.Glob(".gemini/tmp/*/chats/*.jsonl")
		if err != nil {
			return err
		}
		for _, file := range files {
			f, err := home.Open(file)
			if err != nil {
				return err
			}
			told := wasTold(io.LimitReader(f, maxSession), setup.Prefix)
			f.Close()
			if told {
				setup.Prefix = ""
				return nil
			}
		}
	}
	return nil
}

// A record is one line of the file of a session.
type record struct {
	Type    string `json:"type"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// wasTold reports whether a message of the user's in the file of a session
// begins with text.
func wasTold(session io.Reader, text string) bool {
	for lines := json.NewDecoder(session); ; {
		var line json.RawMessage
		if lines.Decode(&line) != nil {
			return false // Gemini CLI reads no further either
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

// holdsNothing reports whether the file of a session says what session it is and
// no more.
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

// tidyChats removes the files of sessions in which nothing was said, such as the
// one that Gemini CLI begins before it is asked for any, and gives those of this
// minute an earlier name: of two files of a session with one name, the new one
// that it begins when it loads a session would be written into the old.
func tidyChats(home *instructions.Home, now time.Time) error {
	root, err := os.OpenRoot(home.Path())
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := home.Glob(".gemini/tmp/*/chats/session-*.jsonl")
	for _, file := range files {
		err = errors.Join(err, tidyChat(home, root, file, now))
	}
	return err
}

// What is read of a session's file: maxSession bytes to find a message in it, and
// maxEmpty of one that may hold nothing.
const (
	maxSession = 64 << 20
	maxEmpty   = 1 << 20
)

func tidyChat(home *instructions.Home, root *os.Root, file string, now time.Time) error {
	f, err := home.Open(file)
	if errors.Is(err, instructions.ErrNotRegular) {
		return nil // it is not a session, and not kept
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
		return root.Remove(file)
	}
	dir, name := path.Split(file)
	minute := now.UTC().Truncate(time.Minute)
	if created := createdAt(name); created.IsZero() || created.Before(minute) {
		return nil
	}
	return root.Rename(file, dir+minute.Add(-time.Minute).Format(sessionTime)+name[len(sessionTime):])
}

// sessionTime is the time in the name of a session's file, in UTC.
const sessionTime = "session-2006-01-02T15-04"

// createdAt returns when the session of a file was created, to the minute; zero
// where its name does not say.
func createdAt(name string) time.Time {
	created, err := time.Parse(sessionTime, name[:min(len(name), len(sessionTime))])
	if err != nil {
		return time.Time{}
	}
	return created
}
