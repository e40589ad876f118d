package main

import (
	"encoding/json"
	"strings"
)

// A chunk is one event of a stream, or the answer as one document.
type chunk struct {
	ID      loose           `json:"id"`
	Model   loose           `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`

	Citations     json.RawMessage `json:"citations"`
	SearchResults json.RawMessage `json:"search_results"`
}

type choice struct {
	Delta   said    `json:"delta"`
	Message said    `json:"message"`
	Text    content `json:"text"`
	Finish  string  `json:"finish_reason"`
}

// said is a part of an answer or all of it. Servers disagree about what to call
// what the model thinks.
type said struct {
	Content          content `json:"content"`
	ReasoningContent content `json:"reasoning_content"`
	Reasoning        content `json:"reasoning"`
}

func (s *said) thinking() string {
	if s.ReasoningContent != "" {
		return string(s.ReasoningContent)
	}
	return string(s.Reasoning)
}

// loose is a text that does not matter enough to refuse what is none.
type loose string

func (l *loose) UnmarshalJSON(raw []byte) error {
	*l = loose(word(raw))
	return nil
}

// content is a text, or the texts of a list of parts.
type content string

func (c *content) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		return json.Unmarshal(raw, (*string)(c))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	*c = content(all.String())
	return nil
}

// sources returns the addresses that the answer rests on.
func (c *chunk) sources() []string {
	if list := addresses(c.Citations); len(list) > 0 {
		return list
	}
	return addresses(c.SearchResults)
}

// addresses reads a list of addresses, or of objects with one. Each keeps its
// place: the answer refers to it by number.
func addresses(raw json.RawMessage) []string {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	var list []string
	for _, item := range items {
		var object struct {
			URL string `json:"url"`
		}
		var address string
		if json.Unmarshal(item, &address) != nil && readable(json.Unmarshal(item, &object)) {
			address = object.URL
		}
		list = append(list, address)
	}
	return list
}

// cost returns what the answer cost; nil where the server does not say.
func (c *chunk) cost() *Tokens {
	var u *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
		Reasoning  int64 `json:"reasoning_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		More struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Cost json.RawMessage `json:"cost"`
	}
	if !readable(json.Unmarshal(c.Usage, &u)) || u == nil {
		return nil
	}
	t := &Tokens{Input: u.Prompt, Cached: u.Details.Cached, Output: u.Completion, Reasoning: max(u.Reasoning, u.More.Reasoning)}
	if t.Reasoning > 0 && u.Total == u.Prompt+u.Completion+t.Reasoning {
		t.Output += t.Reasoning // this server counts them apart
	}
	t.CostUSD = dollars(u.Cost)
	return t
}

// dollars reads a cost: a number, or an object with the sum.
func dollars(raw json.RawMessage) *float64 {
	var sum *float64
	if json.Unmarshal(raw, &sum) == nil {
		return sum
	}
	var parts struct {
		Total *float64 `json:"total_cost"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	return parts.Total
}
