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
	baseEnv  []string // variables with a base URL; the first that is set is used
	path     string   // path of the endpoint, for a base URL without one
	model    string   // default model; "" for the server's
	modelEnv []string
	tokenEnv string

	// cumulative: a chunk may repeat the whole answer so far.
	cumulative bool
	// requestUsage: the server reports tokens on request only.
	requestUsage bool

	idle  time.Duration
	total time.Duration
}

// providers are the known providers; the first is the default.
var providers = []provider{
	{
		name:         "openai",
		baseURL:      "https://api.openai.com",
		baseEnv:      []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"},
		path:         "/v1/chat/completions",
		modelEnv:     []string{"OPENAI_MODEL"},
		tokenEnv:     "OPENAI_API_KEY",
		requestUsage: true,
		// A slow local server sends nothing while it reads a long prompt.
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
		return provider{}, fmt.Errorf("unknown provider %q; use one of %s", name, providerNames())
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

// endpointPath is the end of the path of every endpoint.
const endpointPath = "/chat/completions"

// endpoint returns the endpoint of a base URL. A path that ends in endpointPath is
// kept, any other path is extended by it, and an empty one becomes the provider's.
// Errors do not quote base, which may contain a secret.
func (p *provider) endpoint(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, errors.New("the base URL is not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return nil, errors.New("the base URL must begin with https:// or http:// and a host")
	case u.User != nil:
		return nil, errors.New("the base URL contains a login; use --token-env")
	case u.Fragment != "":
		return nil, errors.New("the base URL contains a fragment (#)")
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

// withoutQuery returns u in a form that may be printed: a query can contain a key.
func withoutQuery(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// isLoopback reports whether the host of u is the local machine.
func isLoopback(u *url.URL) bool {
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
