package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/structured"
)

// AskJSON asks an agent whose attempt is done for a JSON value that follows schema, and
// once more if the answer does not. The error has [structured.Violations] in its chain
// if the second answer does not either, and is otherwise that of [Running.Ask].
func AskJSON(ctx context.Context, r Running, prompt string, schema *structured.Schema) (json.RawMessage, error) {
	prompt += "\n\nAnswer with one JSON value that follows this JSON Schema, and nothing else:\n\n" + string(schema.JSON())
	for again := false; ; again = true {
		answer, err := r.Ask(ctx, prompt)
		if err != nil {
			return nil, err
		}
		value, err := schema.Check(answer)
		if err == nil {
			return value, nil
		}
		violations, _ := errors.AsType[structured.Violations](err)
		if again {
			return nil, fmt.Errorf("the answer is still invalid after one retry: %w", err)
		}
		prompt = "Your answer does not follow the JSON Schema:\n\n- " + strings.Join(violations, "\n- ") +
			"\n\nDo not repeat the work. Give the same answer as one JSON value that follows the schema, and nothing else."
	}
}
