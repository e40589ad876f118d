//go:build linux || darwin

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/bench/corpus"
)

// readSize is how much a decoder is given at once, as from a pipe.
const readSize = 64 << 10

// rendered decodes lines from memory and renders each event as text.
func (j job) rendered() (cost, error) {
	show := runtimeOf(j.Shape).NewFormatter()
	var text []byte
	var size int64
	got, err := j.fromMemory(func(e *agent.Event) {
		text = show.Append(text[:0], e)
		size += int64(len(text))
	})
	got.Text = size
	return got, err
}

// decoded decodes lines from memory.
func (j job) decoded() (cost, error) { return j.fromMemory(func(*agent.Event) {}) }

func (j job) fromMemory(take func(*agent.Event)) (got cost, err error) {
	data, err := os.ReadFile(j.File)
	if err != nil {
		return got, err
	}
	got.Lines = int64(bytes.Count(data, []byte("\n")))
	s := formatters.NewStream(runtimeOf(j.Shape).NewDecoder(), func(e *agent.Event) error {
		if e.Kind == agent.KindRaw {
			return fmt.Errorf("a line is not known: %.100s", e.Text)
		}
		got.Events++
		take(e)
		return nil
	})
	before := allocations()
	got.Wall, got.CPU, err = clock(func() error {
		for chunk := range slices.Chunk(data, readSize) {
			if _, err := s.Write(chunk); err != nil {
				return err
			}
		}
		return s.Close()
	})
	got.Allocations = allocations() - before
	return got, err
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// unmarshal decodes lines from memory with encoding/json into what an event
// needs of them, and makes no events.
func (j job) unmarshal() (got cost, err error) {
	data, err := os.ReadFile(j.File)
	if err != nil {
		return got, err
	}
	line := unmarshalLine(j.Shape)
	before := allocations()
	got.Wall, got.CPU, err = clock(func() error {
		for text := range bytes.Lines(data) {
			if err := line(text); err != nil {
				return err
			}
			got.Lines++
		}
		return nil
	})
	got.Allocations = allocations() - before
	return got, err
}

func unmarshalLine(shape corpus.Shape) func([]byte) error {
	return map[corpus.Shape]func([]byte) error{
		corpus.Claude: into[claudeLine], corpus.Codex: into[codexLine], corpus.Gemini: into[geminiLine],
	}[shape]
}

func into[T any](line []byte) error {
	var v T
	return json.Unmarshal(line, &v)
}

type claudeLine struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	SessionID string          `json:"session_id"`
	Parent    string          `json:"parent_tool_use_id"`
	Model     string          `json:"model"`
	Message   claudeMessage   `json:"message"`
	ToolUse   json.RawMessage `json:"tool_use_result"` // left as it is: less than an event needs
	Event     struct {
		Type    string        `json:"type"`
		Message claudeMessage `json:"message"`
		Delta   struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
		} `json:"delta"`
	} `json:"event"`
	IsError bool   `json:"is_error"`
	Result  string `json:"result"`
}

type claudeMessage struct {
	ID      string `json:"id"`
	Content []struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   string          `json:"content"`
		IsError   bool            `json:"is_error"`
	} `json:"content"`
}

type codexLine struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"`
	Item     struct {
		ID        string          `json:"id"`
		Type      string          `json:"type"`
		Status    string          `json:"status"`
		Text      string          `json:"text"`
		Command   string          `json:"command"`
		Output    string          `json:"aggregated_output"`
		ExitCode  *int            `json:"exit_code"`
		Server    string          `json:"server"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
		Result    json.RawMessage `json:"result"`
		Query     string          `json:"query"`
		Changes   []struct {
			Path string `json:"path"`
			Kind string `json:"kind"`
		} `json:"changes"`
		Items []struct {
			Text      string `json:"text"`
			Completed bool   `json:"completed"`
		} `json:"items"`
	} `json:"item"`
	Usage struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
}

type geminiLine struct {
	Type       string          `json:"type"`
	SessionID  string          `json:"session_id"`
	Model      string          `json:"model"`
	Role       string          `json:"role"`
	Content    string          `json:"content"`
	Delta      bool            `json:"delta"`
	ToolName   string          `json:"tool_name"`
	ToolID     string          `json:"tool_id"`
	Parameters json.RawMessage `json:"parameters"`
	Status     string          `json:"status"`
	Output     string          `json:"output"`
	Error      struct {
		Message string `json:"message"`
	} `json:"error"`
}
