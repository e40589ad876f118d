package codex

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
)

// sessionTail is how many bytes are read from the end of a session file. The last
// records of a run are small.
const sessionTail = 1 << 20

// record holds the needed members of a line of a session file (0.169.0).
type record struct {
	Type    string `json:"type"`
	Payload struct {
		Model string `json:"model"`            // of turn_context
		Turn  *usage `json:"turn_token_usage"` // of token_usage_record
	} `json:"payload"`
}

// complete reads the model of the run from the session file in home and, for a resumed
// session, the tokens of this run.
func complete(home *instructions.Home, result *agent.Result) {
	if result.SessionID == "" {
		return
	}
	name := findSession(home, result.SessionID)
	if name == "" {
		return
	}
	var turn *usage
	for line := range bytes.Lines(readTail(home.Open, name)) {
		var r record
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		if r.Type == "turn_context" && r.Payload.Model != "" {
			result.Model = r.Payload.Model
		}
		if r.Type == "token_usage_record" && r.Payload.Turn != nil {
			turn = r.Payload.Turn
		}
	}
	if turn != nil && result.Usage != nil && result.Usage.Cumulative {
		u := turn.total()
		result.Usage = &u
	}
}

// sessionFiles matches the session files below a home, which has a folder for each day.
const sessionFiles = sessionTree + "/*/*/*/*.jsonl"

func findSession(home *instructions.Home, id string) string {
	files, _ := home.Glob(sessionFiles) // on an error, the files found so far
	for _, file := range files {
		if strings.HasSuffix(file, "-"+id+".jsonl") {
			return file
		}
	}
	return ""
}

// readTail returns the last lines of a regular file. open must not block.
func readTail(open func(name string) (*os.File, error), name string) []byte {
	file, err := open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	from := max(info.Size()-sessionTail, 0)
	tail, err := io.ReadAll(io.NewSectionReader(file, from, sessionTail))
	if err != nil {
		return nil
	}
	if from > 0 {
		_, tail, _ = bytes.Cut(tail, []byte("\n"))
	}
	return tail
}

type usage struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
}

func (u *usage) total() agent.Usage {
	return agent.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning}
}
