package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// settings are the settings of a conversation.
type settings struct {
	provider provider
	endpoint *url.URL
	model    string
	access   string
	token    string
	tokenEnv string // the variable that holds the token; "" if none is to be sent
	idle     time.Duration
	total    time.Duration
	retries  int
}

// errVersion is returned by parseSettings for --version.
var errVersion = errors.New("version")

// flags are the values of the command line.
type flags struct {
	settings // without provider, endpoint and token
	name     string
	baseURL  string
	version  bool
}

func (f *flags) set() *flag.FlagSet {
	s := flag.NewFlagSet("bus-agent-rest", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	s.StringVar(&f.name, "provider", providers[0].name, "`NAME` of the provider: "+providerNames()+"; openai is any compatible endpoint")
	s.StringVar(&f.baseURL, "base-url", "", "`URL` of the endpoint, its parent path or its host")
	s.StringVar(&f.model, "model", "", "`NAME` of the model")
	s.StringVar(&f.tokenEnv, "token-env", "", "`NAME` of the variable that holds the token; empty sends none")
	s.StringVar(&f.access, "access", "write", "`ACCESS` of the caller, read or write; reported in the output only")
	s.DurationVar(&f.idle, "idle-timeout", 0, "how long the server may send nothing during a request, a `TIME` such as 60s; 0 means no limit")
	s.DurationVar(&f.total, "timeout", 0, "`TIME` the whole run may take; 0 means no limit")
	s.IntVar(&f.retries, "retries", 5, "repeat a failed request up to `N` times")
	s.BoolVar(&f.version, "version", false, "print the version")
	return s
}

// usage returns the text of --help.
func usage() string {
	var b strings.Builder
	b.WriteString("usage: bus-agent-rest [flags] < prompt\n\nSends the prompt to a model over HTTP and writes the answer as lines of JSON.\n\n")
	set := new(flags).set()
	set.SetOutput(&b)
	set.PrintDefaults()
	b.WriteString("\nProviders, with the variable of the token, and the defaults of --model, --idle-timeout and --timeout:\n")
	for _, p := range providers {
		fmt.Fprintf(&b, "  %-10s  %-18s  %-15s  %v, %v\n", p.name, p.tokenEnv, cmp.Or(p.model, "the server's"), p.idle, p.total)
	}
	return b.String()
}

// parseSettings returns the settings in the command line and the environment.
func parseSettings(args []string, getenv func(string) string) (*settings, error) {
	var f flags
	set := f.set()
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	p, err := findProvider(f.name)
	switch {
	case f.version:
		return nil, errVersion
	case set.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q; pass the prompt on standard input", set.Arg(0))
	case err != nil:
		return nil, err
	case f.idle < 0:
		return nil, errors.New("--idle-timeout is negative")
	case f.total < 0:
		return nil, errors.New("--timeout is negative")
	case f.retries < 0 || f.retries > maxRetries:
		return nil, fmt.Errorf("--retries must be from 0 to %d", maxRetries)
	case f.access != "read" && f.access != "write":
		return nil, fmt.Errorf("unknown access %q; use read or write", f.access)
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	s := &f.settings
	if given["model"] && s.model == "" {
		return nil, errors.New("--model is empty")
	}
	s.provider = p
	if !given["idle-timeout"] {
		s.idle = p.idle
	}
	if !given["timeout"] {
		s.total = p.total
	}
	if !given["token-env"] {
		s.tokenEnv = p.tokenEnv
	}
	if s.tokenEnv != "" {
		s.token = strings.TrimSpace(getenv(s.tokenEnv))
	}
	if strings.ContainsFunc(s.token, unicode.IsControl) {
		return nil, fmt.Errorf("the value of %s contains a control character", s.tokenEnv)
	}
	s.model = cmp.Or(s.model, firstSet(getenv, p.modelEnv), p.model)
	s.endpoint, err = p.endpoint(cmp.Or(f.baseURL, firstSet(getenv, p.baseEnv), p.baseURL))
	return s, err
}

// maxRetries is the largest value of --retries.
const maxRetries = 100

// firstSet returns the value of the first variable in names that is not blank.
func firstSet(getenv func(string) string, names []string) string {
	for _, name := range names {
		if v := strings.TrimSpace(getenv(name)); v != "" {
			return v
		}
	}
	return ""
}

// isDefaultHost reports whether the endpoint is on the provider's default host.
func (s *settings) isDefaultHost() bool {
	u, err := url.Parse(s.provider.baseURL)
	return err == nil && strings.EqualFold(u.Host, s.endpoint.Host)
}
