package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// settings say how one conversation is held.
type settings struct {
	provider provider
	endpoint *url.URL
	model    string
	access   string
	token    string
	tokenEnv string // where the token is expected; empty for none
	idle     time.Duration
	total    time.Duration
	retries  int
}

// accesses are the words of access that make sense of a program without tools.
var accesses = []string{"read", "write"}

// errVersion is asked for by --version.
var errVersion = errors.New("version")

// flags are what the command line says.
type flags struct {
	provider string
	baseURL  string
	model    string
	tokenEnv string
	access   string
	idle     time.Duration
	total    time.Duration
	retries  int
	version  bool
}

func (f *flags) set() *flag.FlagSet {
	s := flag.NewFlagSet("bus-agent-rest", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	s.StringVar(&f.provider, "provider", providers[0].name, "`NAME` of the provider: "+providerNames()+" (any endpoint of that kind)")
	s.StringVar(&f.baseURL, "base-url", "", "the endpoint, or the address it is at; a `URL`")
	s.StringVar(&f.model, "model", "", "`NAME` of the model")
	s.StringVar(&f.tokenEnv, "token-env", "", "`NAME` of the variable that holds the token; empty is no token")
	s.StringVar(&f.access, "access", "write", "`WORD` of what the caller allows, read or write; only written down")
	s.DurationVar(&f.idle, "idle-timeout", 0, "the longest silence of the server, a `TIME` such as 60s; 0 is any")
	s.DurationVar(&f.total, "timeout", 0, "the longest `TIME` in all; 0 is any")
	s.IntVar(&f.retries, "retries", 5, "a request is tried again `N` times at most")
	s.BoolVar(&f.version, "version", false, "print the version")
	return s
}

// usage is the text of --help.
func usage() string {
	var b strings.Builder
	b.WriteString("usage: bus-agent-rest [flags] < prompt\n\nAsks a model over HTTP and writes its answer as lines of JSON.\n\n")
	set := new(flags).set()
	set.SetOutput(&b)
	set.PrintDefaults()
	b.WriteString("\nThe providers, with the variable of the token, the model, and the limits of silence and time:\n")
	for _, p := range providers {
		fmt.Fprintf(&b, "  %-10s  %-18s  %-15s  %v, %v\n", p.name, p.tokenEnv, cmp.Or(p.model, "the server's"), p.idle, p.total)
	}
	return b.String()
}

// settle reads the command line and the environment.
func settle(args []string, getenv func(string) string) (*settings, error) {
	var f flags
	set := f.set()
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	p, err := findProvider(f.provider)
	switch {
	case f.version:
		return nil, errVersion
	case set.NArg() > 0:
		return nil, errors.New("there are arguments that are no flags; the prompt comes through standard input")
	case err != nil:
		return nil, err
	case f.idle < 0 || f.total < 0:
		return nil, errors.New("a time is negative")
	case f.retries < 0 || f.retries > maxRetries:
		return nil, fmt.Errorf("the number of retries must be from 0 to %d", maxRetries)
	case !slices.Contains(accesses, f.access):
		return nil, fmt.Errorf("unknown access %q; there are %s", f.access, strings.Join(accesses, ", "))
	case given["model"] && f.model == "":
		return nil, errors.New("the name of the model is empty")
	}
	s := &settings{provider: p, access: f.access, retries: f.retries, idle: p.idle, total: p.total, tokenEnv: p.tokenEnv}
	if given["idle-timeout"] {
		s.idle = f.idle
	}
	if given["timeout"] {
		s.total = f.total
	}
	if given["token-env"] {
		s.tokenEnv = f.tokenEnv
	}
	if s.tokenEnv != "" {
		s.token = strings.TrimSpace(getenv(s.tokenEnv))
	}
	if strings.ContainsFunc(s.token, unicode.IsControl) {
		return nil, fmt.Errorf("the value of %s has a character that no token has", s.tokenEnv)
	}
	s.model = first(f.model, p.modelEnv, getenv, p.model)
	s.endpoint, err = p.endpoint(first(f.baseURL, p.baseEnv, getenv, p.baseURL))
	return s, err
}

// maxRetries bounds what can be asked for.
const maxRetries = 100

// first returns value, or else the first variable that is set, or else standard.
func first(value string, names []string, getenv func(string) string, standard string) string {
	if value != "" {
		return value
	}
	for _, name := range names {
		if v := strings.TrimSpace(getenv(name)); v != "" {
			return v
		}
	}
	return standard
}

// isDefaultHost reports whether the endpoint is the provider's own.
func (s *settings) isDefaultHost() bool {
	u, err := url.Parse(s.provider.baseURL)
	return err == nil && strings.EqualFold(u.Host, s.endpoint.Host)
}
