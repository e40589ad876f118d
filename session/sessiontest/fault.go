package sessiontest

import (
	"slices"
	"strings"
	"time"
)

// A Fault is a way in which an agent goes wrong.
type Fault struct {
	Name string
	// Apply returns a copy of steps with the fault at step i.
	Apply func(steps []Step, i int) []Step
	// Harmless reports that the fault does not change the outcome of
	// messages.
	Harmless bool
}

// Faults returns the faults that [Peer] plays.
func Faults() []Fault {
	return []Fault{
		{Name: "dies before it", Apply: insert(Step{Kind: Die})},
		{Name: "dies after it", Apply: after(Step{Kind: Die})},
		{Name: "dies in the middle of a line", Apply: func(steps []Step, i int) []Step {
			half := Step{Kind: Write, Line: steps[i].Line[:len(steps[i].Line)/2]}
			return append(slices.Clone(steps[:i]), half, Step{Kind: Die})
		}},
		{Name: "falls silent", Apply: insert(Step{Kind: Hush})},
		{Name: "says it twice", Apply: said(func(s Step) []Step { return []Step{s, s} })},
		{Name: "never says it", Apply: func(steps []Step, i int) []Step { return slices.Delete(slices.Clone(steps), i, i+1) }},
		{Name: "says it too early", Apply: swap},
		{Name: "says it without a line break", Apply: said(func(s Step) []Step { return []Step{{Kind: Write, Line: s.Line}} })},
		{Name: "sends unknown messages", Apply: insert(unknown...), Harmless: true},
		{Name: "says what is malformed", Apply: insert(malformed...), Harmless: true},
		{Name: "cuts a line", Apply: said(func(s Step) []Step { return []Step{{Kind: Say, Line: s.Line[:len(s.Line)/2]}} })},
		{Name: "reads no more", Apply: insert(Step{Kind: Deafen})},
		{Name: "answers too late", Apply: insert(Step{Kind: Pause, For: time.Hour})},
	}
}

// LongLine returns a step that sends a line of JSON of at least size bytes,
// unlike any line of an agent.
func LongLine(size int) Step {
	return Step{Kind: Say, Line: `{"type":"long","method":"long","params":{"text":"` + strings.Repeat("x", size) + `"}}`}
}

// unknown are well-formed lines that mean nothing.
var unknown = []Step{
	{Kind: Say, Line: `{"method":"from/the/future","params":{"threadId":"other","turnId":"other"}}`},
	{Kind: Say, Line: `{"method":"from/the/future","id":"request-1","params":{}}`},
	{Kind: Say, Line: `{"id":987654321,"result":{}}`},
	{Kind: Say, Line: `{"type":"from_the_future","request_id":"x"}`},
	{Kind: Say, Line: `{"type":"control_request","request_id":"y","request":{"subtype":"from_the_future"}}`},
	{Kind: Say, Line: `{"type":"control_response","response":{"subtype":"success","request_id":"nobody's"}}`},
}

// malformed are lines that are not messages.
var malformed = []Step{
	{Kind: Say, Line: ``},
	{Kind: Say, Line: `{`},
	{Kind: Say, Line: `null`},
	{Kind: Say, Line: `[1,2]`},
	{Kind: Say, Line: `{"id":null,"method":null}`},
	{Kind: Say, Line: `{"method":7,"id":{},"params":[]}`},
	{Kind: Say, Line: `{"type":"control_request"}`},
	{Kind: Say, Line: `{"type":"control_response","response":7}`},
	{Kind: Say, Line: "thread 'main' panicked\x00\xff\xfe\r"},
}

func insert(what ...Step) func([]Step, int) []Step {
	return func(steps []Step, i int) []Step { return slices.Insert(slices.Clone(steps), i, what...) }
}

func after(what ...Step) func([]Step, int) []Step {
	return func(steps []Step, i int) []Step { return slices.Insert(slices.Clone(steps), i+1, what...) }
}

// said replaces a step in which the peer says something.
func said(change func(Step) []Step) func([]Step, int) []Step {
	return func(steps []Step, i int) []Step {
		if steps[i].Kind != Say {
			return steps
		}
		return slices.Concat(steps[:i], change(steps[i]), steps[i+1:])
	}
}

// swap exchanges a step with the one before it.
func swap(steps []Step, i int) []Step {
	if i == 0 {
		return steps
	}
	swapped := slices.Clone(steps)
	swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
	return swapped
}
