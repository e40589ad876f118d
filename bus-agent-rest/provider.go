package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A provider is a kind of endpoint.
type provider struct {
	name     string
	baseURL  string
	baseEnv  []string // the first that is set counts
	path     string   // of the endpoint, where the address has none
	model    string   // empty leaves the choice to the server
	modelEnv []string
	tokenEnv string

	// cumulative says that each chunk may repeat the whole answer so far.
	cumulative bool
	// asksUsage says that the server counts tokens only when it is asked to.
	asksUsage bool

	idle  time.Duration
	total time.Duration
}

// providers lists them; the first is the default.
var providers = []provider{
	{
		name:      "openai",
		baseURL:   "https://api.openai.com",
		baseEnv:   []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"},
		path:      "/v1/chat/completions",
		modelEnv:  []string{"OPENAI_MODEL"},
		tokenEnv:  "OPENAI_API_KEY",
		asksUsage: true,
		// A server without much of a processor reads a long prompt in silence.
		idle:  5 * time.Minute,
		total: time.Hour,
	},
	{
		name:       "perplexity",
		baseURL:    "https://api.perplexity.ai",
		baseEnv:    []string{"PERPLEXITY_BASE_URL"},
		path:       "/chat/completions",
		model:      "sonar-reasoning",
		modelEnv:   []string{"PERPLEXITY_MODEL"},
		tokenEnv:   "PERPLEXITY_API_KEY",
		cumulative: true,
		idle:       time.Minute,
		total:      2 * time.Minute,
	},
	{
		name:     "xai",
		baseURL:  "https://api.x.ai",
		baseEnv:  []string{"XAI_API_ENDPOINT", "XAI_BASE_URL", "XAI_API_BASE"},
		path:     "/v1/chat/completions",
		model:    "grok-4",
		modelEnv: []string{"XAI_MODEL"},
		tokenEnv: "XAI_API_KEY",
		idle:     time.Minute,
		total:    10 * time.Minute,
	},
}

func findProvider(name string) (provider, error) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, fmt.Errorf("unknown provider %q; there are %s", name, providerNames())
	}
	return providers[i], nil
}

func providerNames() string {
	names := make([]string, len(providers))
	for i, p := range providers {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// endpointPath is what every endpoint ends with.
const endpointPath = "/chat/completions"

// endpoint returns the endpoint that base means: itself when it is one, the
// provider's path at an address without a path, else the path with what endpoints
// end with, as the base URLs of other clients mean it. Nothing of base that could
// be a secret is in an error.
func (p *provider) endpoint(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, errors.New("the base URL cannot be read")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return nil, errors.New("the base URL must begin with https:// or http:// and a host")
	case u.User != nil:
		return nil, errors.New("the base URL holds a login; the token comes from the environment alone")
	case u.Fragment != "":
		return nil, errors.New("the base URL has a part after #, which is never sent")
	}
	switch path := strings.TrimRight(u.Path, "/"); {
	case path == "":
		u.Path = p.path
	case strings.HasSuffix(path, endpointPath):
		u.Path = path
	default:
		u.Path = path + endpointPath
	}
	u.RawPath = ""
	return u, nil
}

// shown returns an address as it may be printed: a query can hold a key.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// isLoopback reports whether what is sent to u stays on this machine.
func isLoopback(u *url.URL) bool {
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
