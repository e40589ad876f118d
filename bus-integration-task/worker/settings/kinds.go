package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// A kind is how the text of a setting is read.
type kind[T any] struct {
	parse func(text string) (T, error)
	json  jsonType // of a policy field
	value string   // what the help calls the value
}

type jsonType string

const (
	jsonString  jsonType = "a string"
	jsonBool    jsonType = "true or false"
	jsonInteger jsonType = "an integer"
)

const maxLine = 4 << 10 // bytes of a value other than JSON

var (
	texts       = kind[string]{line, jsonString, "TEXT"}
	paths       = kind[string]{path, jsonString, "PATH"}
	urls        = kind[string]{eventsURL, jsonString, "URL"}
	decisions   = kind[*bool]{decision, jsonBool, "BOOL"}
	executables = kind[string]{executable, jsonString, "COMMAND"}
	switches    = kind[bool]{boolean, jsonBool, ""}
	durations   = kind[time.Duration]{duration, jsonString, "DURATION"}
	leases      = kind[time.Duration]{lease, jsonString, "DURATION"}
	recipient   = kind[string]{unlessEmpty(task.ParseRecipient), jsonString, "NAME"}
	workRef     = kind[string]{unlessEmpty(task.ParseRef), jsonString, "REF"}
	workerID    = kind[string]{name("worker ID", idForm, "use letters, digits, '.', '_', ':' and '-'"), jsonString, "ID"}
	secretRef   = kind[string]{name("secret", secretForm, "use the name of a file in the folder of secrets"), jsonString, "NAME"}
	backends    = kind[string]{backendName, jsonString, "NAME"}
	sandboxes   = kind[backend.Sandbox]{backend.ParseSandbox, jsonString, "NAME"}
	approvals   = kind[backend.ApprovalPolicy]{backend.ParseApprovalPolicy, jsonString, "NAME"}
	efforts     = kind[agent.ReasoningEffort]{unlessEmpty(agent.ParseEffort), jsonString, "EFFORT"}
	models      = kind[string]{unlessEmpty(agent.ParseModel), jsonString, "MODEL"}
	lists       = kind[[]string]{list, jsonString, "LIST"}
	arguments   = kind[[]string]{words, jsonString, "JSON"}
	commands    = kind[[]string]{command, jsonString, "JSON"}
	messages    = kind[string]{message, jsonString, "TEXT"}
)

func integer(least, most int) kind[int] {
	return kind[int]{func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%s is not a number from %d to %d", quote(text), least, most)
		}
		return n, nil
	}, jsonInteger, "NUMBER"}
}

func oneOf(words ...string) kind[string] {
	return kind[string]{func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("%s is unknown; use %s", quote(text), strings.Join(words, " or "))
		}
		return text, nil
	}, jsonString, strings.Join(words, "|")}
}

// quote shows text in an error, shortened.
func quote(text string) string {
	const most = 100
	if len(text) > most {
		at := most
		for !utf8.RuneStart(text[at]) {
			at--
		}
		text = text[:at] + "…"
	}
	return strconv.Quote(text)
}

func line(text string) (string, error) {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("it has control characters or is not UTF-8")
	}
	return text, nil
}

func path(text string) (string, error) {
	if text, err := line(text); text == "" || err != nil {
		return "", err
	}
	return filepath.Abs(text)
}

func eventsURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", errors.New("it is not an http or https URL; use one such as http://127.0.0.1:8081")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("it has a user, a query or a fragment; use --events-token-file for the token")
	}
	return line(text)
}

func boolean(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1", "yes", "on":
		return true, nil
	case "false", "0", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%s is not true or false", quote(text))
}

// decision reads a boolean that may be undecided.
func decision(text string) (*bool, error) {
	if text == "" {
		return nil, nil
	}
	is, err := boolean(text)
	return &is, err
}

func executable(text string) (string, error) {
	if text == "" || strings.Contains(text, "/") && !filepath.IsAbs(text) {
		return "", fmt.Errorf("%s is neither a name nor an absolute path", quote(text))
	}
	return line(text)
}

const maxDuration = 30 * 24 * time.Hour

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxDuration {
		return 0, fmt.Errorf("%s is not a duration from 0 to %v; use one such as 30m", quote(text), maxDuration)
	}
	return d, nil
}

const minLease = 3 * time.Second

func lease(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < minLease || d > task.MaxLease {
		return 0, fmt.Errorf("%s is not a duration from %v to %v; use one such as 1m", quote(text), minLease, task.MaxLease)
	}
	return d, nil
}

var (
	idForm     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)
	secretForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// name returns a parser of names; an empty one stays empty.
func name(what string, form *regexp.Regexp, advice string) func(string) (string, error) {
	return func(text string) (string, error) {
		if text != "" && !form.MatchString(text) {
			return "", fmt.Errorf("%s is not a %s; %s", quote(text), what, advice)
		}
		return text, nil
	}
}

// unlessEmpty returns a parser that parses what is not empty with parse.
func unlessEmpty[T ~string](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		if text == "" {
			return "", nil
		}
		return parse(text)
	}
}

func backendName(text string) (string, error) {
	_, session := backend.SessionRuntime(text)
	if text != backend.NameContainer && !session {
		return "", fmt.Errorf("%s is unknown; use %s, %s or session:RUNTIME", quote(text), backend.NameAppServer, backend.NameContainer)
	}
	return text, nil
}

func list(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	words := strings.Split(text, ",")
	for i, word := range words {
		if words[i] = strings.TrimSpace(word); words[i] == "" || len(words) > 20 {
			return nil, fmt.Errorf("%s is not a list of at most 20 names; use one such as codex,claude", quote(text))
		}
	}
	return words, nil
}

// words reads a JSON array of strings.
func words(text string) ([]string, error) {
	const (
		most    = 1000
		maxText = 256 << 10
	)
	if text == "" {
		return nil, nil
	}
	var elements []string
	if len(text) > maxText || json.Unmarshal([]byte(text), &elements) != nil || len(elements) > most || elements == nil ||
		slices.ContainsFunc(elements, func(word string) bool { return strings.Contains(word, "\x00") }) {
		return nil, errors.New(`it is not a JSON array of strings; use one such as ["codex","--version"]`)
	}
	return elements, nil
}

func command(text string) ([]string, error) {
	list, err := words(text)
	if err == nil && list != nil && (len(list) == 0 || list[0] == "") {
		err = errors.New("it names no program")
	}
	for _, word := range list {
		if err == nil {
			err = checkPlaceholders(word, commandPlaceholders)
		}
	}
	return list, err
}

func message(text string) (string, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New("it is empty")
	case strings.Contains(text, "\x00") || !utf8.ValidString(text):
		return "", errors.New("it has a NUL or is not UTF-8")
	}
	return text, checkPlaceholders(text, messagePlaceholders)
}
