package delegation

import (
	"errors"
	"fmt"

	"github.com/busdk/bus-agent/agent"
)

// ErrLimit: a bound of the [Settings] is reached. Nothing was started.
var ErrLimit = errors.New("limit")

// KindOf returns the kind of an error of a [Broker] in one word: "limit", or that of
// [agent.KindOf].
func KindOf(err error) string {
	if errors.Is(err, ErrLimit) {
		return "limit"
	}
	return agent.KindOf(err)
}

var errNotDirectory = errors.New("not a directory")

// limitError is an ErrLimit with its reason.
type limitError struct{ text string }

func (e *limitError) Error() string        { return e.text }
func (e *limitError) Is(target error) bool { return target == ErrLimit }

func limitf(format string, args ...any) error {
	return &limitError{fmt.Sprintf(format, args...) + "; nothing was started"}
}
