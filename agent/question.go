package agent

import (
	"slices"
	"strconv"
	"strings"
)

// A Question is a question of the agent to the user. An answer is a list of strings: the
// labels of the chosen options, or a text of the user.
type Question struct {
	// Header is a short label, which can be empty. Text is the question.
	Header string `json:"header,omitempty"`
	Text   string `json:"text"`
	// Options are the answers to choose from. Without any, the answer is a text.
	Options []Option `json:"options,omitempty"`
	// Multiple reports that several options can be chosen.
	Multiple bool `json:"multiple,omitempty"`
	// FreeText reports that the answer can be a text that is not an option.
	FreeText bool `json:"free_text,omitempty"`
	// Optional reports that the answer can be empty.
	Optional bool `json:"optional,omitempty"`
	// Secret reports that the answer is a secret, which must not be shown or stored.
	Secret bool `json:"secret,omitempty"`
}

// An Option is an answer that the agent offers. Description can be empty.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Check returns why answer does not answer the question, as an error of kind [ErrUsage].
func (q *Question) Check(answer []string) error {
	switch {
	case len(answer) == 0 && !q.Optional:
		return Usagef("the question needs an answer")
	case len(answer) > 1 && !q.Multiple:
		return Usagef("the question takes one answer, not %d", len(answer))
	}
	for _, a := range answer {
		if strings.TrimSpace(a) == "" {
			return Usagef("an answer is empty")
		}
		if !q.takesText() && q.option(a) == "" {
			return Usagef("%s is not one of the options", q.quoted(a))
		}
	}
	return nil
}

// Parse returns the answer that the user means by text: the number of an option, its
// label in upper or lower case, several of these separated by commas if Multiple, or any
// text if FreeText. An error is of kind [ErrUsage].
func (q *Question) Parse(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	answer, ok := q.choices(text)
	if !ok {
		if !q.takesText() {
			return nil, Usagef("%s is not one of the options; use a number from 1 to %d, or a label", q.quoted(text), len(q.Options))
		}
		answer = []string{text}
	}
	return answer, q.Check(answer)
}

// choices returns the options that text names and whether it names nothing else.
func (q *Question) choices(text string) (labels []string, ok bool) {
	if text == "" {
		return nil, true
	}
	if label := q.named(text); label != "" {
		return []string{label}, true
	}
	if !q.Multiple {
		return nil, false
	}
	for part := range strings.SplitSeq(text, ",") {
		label := q.named(strings.TrimSpace(part))
		if label == "" {
			return nil, false
		}
		if !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	return labels, true
}

// named returns the label of the option that text names, "" for none.
func (q *Question) named(text string) string {
	if label := q.option(text); label != "" {
		return label
	}
	for _, o := range q.Options {
		if strings.EqualFold(o.Label, text) {
			return o.Label
		}
	}
	if n, err := strconv.Atoi(text); err == nil && 0 < n && n <= len(q.Options) {
		return q.Options[n-1].Label
	}
	return ""
}

// option returns label if it is that of an option, "" otherwise.
func (q *Question) option(label string) string {
	if slices.ContainsFunc(q.Options, func(o Option) bool { return o.Label == label }) {
		return label
	}
	return ""
}

func (q *Question) takesText() bool { return q.FreeText || len(q.Options) == 0 }

// quoted returns an answer for an error.
func (q *Question) quoted(answer string) string {
	if q.Secret {
		return "the answer"
	}
	return strconv.Quote(answer)
}

func cloneQuestions(questions []Question) []Question {
	questions = slices.Clone(questions)
	for i := range questions {
		questions[i].Options = slices.Clone(questions[i].Options)
	}
	return questions
}
