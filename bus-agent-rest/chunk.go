package main

import (
	"cmp"
	"encoding/json"
	"strings"
)

// A chunk is one event of a stream, or a document with the whole answer.
type chunk struct {
	ID      anyText         `json:"id"`
	Model   anyText         `json:"model"`
	Choices []choice        `json:"choices"`
	Tokens  json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
	// Groq is where Groq's streams have usage and errors.
	Groq groq `json:"x_groq"`

	Citations     json.RawMessage `json:"citations"`
	SearchResults json.RawMessage `json:"search_results"`
}

type groq struct {
	Tokens json.RawMessage `json:"usage"`
	Error  json.RawMessage `json:"error"`
}

type choice struct {
	Index        anyText `json:"index"`
	Delta        part    `json:"delta"`
	Message      part    `json:"message"`
	Text         content `json:"text"`
	FinishReason string  `json:"finish_reason"`
}

// first returns the first choice with index 0, or without one; nil if there is none.
// The others are further answers to the same prompt.
func (c *chunk) first() *choice {
	for i := range c.Choices {
		if index := c.Choices[i].Index; index == "" || index == "0" {
			return &c.Choices[i]
		}
	}
	return nil
}

// problem returns the part of data, of which c was decoded, that reports an error; nil
// if there is none.
func (c *chunk) problem(data []byte) []byte {
	isSet := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
	switch {
	case isSet(c.Error):
		return data
	case isSet(c.Groq.Error):
		return []byte(`{"error":` + string(c.Groq.Error) + `}`)
	}
	return nil
}

// A part is the text and thinking of an answer or of its next part. The member with
// the thinking depends on the server.
type part struct {
	Content          content `json:"content"`
	Refusal          content `json:"refusal"`
	ReasoningContent content `json:"reasoning_content"`
	Reasoning        content `json:"reasoning"`
}

func (p *part) thinking() string { return string(cmp.Or(p.ReasoningContent, p.Reasoning)) }

// anyText is a text that accepts any JSON value.
type anyText string

func (t *anyText) UnmarshalJSON(raw []byte) error {
	*t = anyText(toText(raw))
	return nil
}

// content is a text, or a list of objects with the parts of one. It can contain halves
// of surrogate pairs, see [halves].
type content string

func (c *content) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		return unquote(raw, (*string)(c))
	}
	var parts []struct {
		Text plain `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(string(p.Text))
	}
	*c = content(all.String())
	return nil
}

// plain is the text of a part of content.
type plain string

func (p *plain) UnmarshalJSON(raw []byte) error { return unquote(raw, (*string)(p)) }

// sources returns the addresses of the sources of the answer.
func (c *chunk) sources() []string {
	if list := addresses(c.Citations); len(list) > 0 {
		return list
	}
	return addresses(c.SearchResults)
}

// addresses returns the addresses in a list of strings or of objects with a "url".
// It skips none: the answer refers to them by number.
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
		if json.Unmarshal(item, &address) != nil && isUsable(json.Unmarshal(item, &object)) {
			address = object.URL
		}
		list = append(list, address)
	}
	return list
}

// usage returns the reported usage, or nil.
func (c *chunk) usage() *Usage {
	var t *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
		Reasoning  int64 `json:"reasoning_tokens"`
		Input      struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Output struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Cost  json.RawMessage `json:"cost"`
		Ticks json.RawMessage `json:"cost_in_usd_ticks"`
	}
	if !isUsable(json.Unmarshal(c.Tokens, &t)) || t == nil {
		if !isUsable(json.Unmarshal(c.Groq.Tokens, &t)) || t == nil {
			return nil
		}
	}
	u := &Usage{
		Input: t.Prompt, Cached: t.Input.Cached, Output: t.Completion,
		Reasoning: max(t.Reasoning, t.Output.Reasoning), CostUSD: cmp.Or(dollars(t.Cost), fromTicks(t.Ticks)),
	}
	if u.Reasoning > 0 && t.Total == t.Prompt+t.Completion+u.Reasoning {
		u.Output += u.Reasoning // some servers count them separately
	}
	return u
}

// dollars returns the cost in a number, or in an object with a total.
func dollars(raw json.RawMessage) *float64 {
	var total *float64
	if json.Unmarshal(raw, &total) == nil {
		return total
	}
	var parts struct {
		Total *float64 `json:"total_cost"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	return parts.Total
}

// ticksPerDollar is the unit of xAI's costs.
const ticksPerDollar = 1e10

func fromTicks(raw json.RawMessage) *float64 {
	var ticks *float64
	if json.Unmarshal(raw, &ticks) != nil || ticks == nil {
		return nil
	}
	cost := *ticks / ticksPerDollar
	return &cost
}
