package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/jsonline"
)

// An MCPServer is a server of the Model Context Protocol, whose tools an agent gets. It is
// either a program, with Command, or one at an address, with URL. In Command, Args, URL and
// the values of Env and Headers, ${NAME} stands for a variable of the environment, and
// ${NAME:-TEXT} for TEXT if the variable is not set.
type MCPServer struct {
	// Name has letters, digits, "-" and "_", at most [MaxMCPName] of them.
	Name string `json:"name"`

	// Command is an absolute path, or a name that PATH leads to. The program speaks the
	// protocol on its standard streams. Its environment is that of the agent with Env,
	// as far as the agent passes it on.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`

	// URL begins with http:// or https://. SSE selects the older transport of servers with
	// an address.
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	SSE     bool              `json:"sse,omitempty"`
}

// Limits of MCP servers.
const (
	MaxMCPServers = 32
	MaxMCPName    = 32
	MaxMCPBytes   = 64 << 10 // of the file that describes them
)

// ParseMCPServers reads the common description of MCP servers, as many programs have it:
//
//	{"mcpServers": {
//	  "notes": {"command": "notes-mcp", "args": ["--read"], "env": {"KEY": "${NOTES_KEY}"}},
//	  "docs": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-Key": "${KEY}"}}
//	}}
//
// The type is stdio, http or sse, and can be left out. Unknown and repeated members are
// errors. The servers are in the order of their names. The error is of kind [ErrUsage] and
// shows no value.
func ParseMCPServers(data []byte) ([]MCPServer, error) {
	if len(data) > MaxMCPBytes {
		return nil, Usagef("it has %d bytes, the limit is %d", len(data), MaxMCPBytes)
	}
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := jsonline.Decode(data, &file); err != nil {
		return nil, Usagef("%w", err)
	}
	servers := []MCPServer{}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		var entry struct {
			Type    string            `json:"type"`
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
		}
		if err := jsonline.Decode(file.Servers[name], &entry); err != nil {
			return nil, Usagef("server %q: %w", name, err)
		}
		s := MCPServer{
			Name: name, Command: entry.Command, Args: entry.Args, Env: entry.Env,
			URL: entry.URL, Headers: entry.Headers, SSE: entry.Type == "sse",
		}
		if s.URL == "" && s.Command == "" {
			return nil, Usagef("server %q needs a command or a url", name)
		}
		switch entry.Type {
		case "", s.Type():
		case "stdio", "http", "sse":
			return nil, Usagef("server %q: type %s needs a command for stdio, or a url for http and sse", name, entry.Type)
		default:
			return nil, Usagef("server %q: the type %q is not one of stdio, http, sse", name, entry.Type)
		}
		servers = append(servers, s)
	}
	if len(servers) == 0 {
		return nil, Usagef(`it has no servers: want {"mcpServers": {"NAME": {"command": "PROGRAM"}}}`)
	}
	return servers, CheckMCPServers(servers)
}

// CheckMCPServers returns an [ErrUsage] error that says what is wrong with one of the
// servers. It shows no value of Args, URL, Env and Headers.
func CheckMCPServers(servers []MCPServer) error {
	if len(servers) > MaxMCPServers {
		return Usagef("%d MCP servers are more than the %d that are possible", len(servers), MaxMCPServers)
	}
	seen := map[string]bool{}
	for i := range servers {
		if err := servers[i].check(); err != nil {
			return Usagef("MCP server %q: %w", servers[i].Name, err)
		}
		if seen[servers[i].Name] {
			return Usagef("MCP server %q is given twice", servers[i].Name)
		}
		seen[servers[i].Name] = true
	}
	return nil
}

// letters are those of names, with digits.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func (s *MCPServer) check() error {
	switch {
	case s.Name == "" || len(s.Name) > MaxMCPName || strings.Trim(s.Name, letters+"-_") != "" || strings.Contains(s.Name, "__"):
		return fmt.Errorf(`its name must have letters, digits, "-" and single "_", at most %d`, MaxMCPName)
	case (s.Command == "") == (s.URL == ""):
		return errors.New("it needs a command or a url, and not both")
	case s.Command == "" && len(s.Args)+len(s.Env) > 0:
		return errors.New("args and env are for a server with a command")
	case s.URL == "" && (len(s.Headers) > 0 || s.SSE):
		return errors.New("headers and type sse are for a server with a url")
	}
	for name := range s.Env {
		if name == "" || strings.Trim(name, letters+"_") != "" {
			return fmt.Errorf("%q is not the name of a variable", name)
		}
	}
	for name := range s.Headers {
		if name == "" || strings.Trim(name, letters+"-_") != "" {
			return fmt.Errorf("%q is not the name of a header", name)
		}
	}
	var err error
	s.each(func(text *string) {
		if !utf8.ValidString(*text) || strings.ContainsAny(*text, "\x00\r\n") {
			err = errors.New("one of its texts has a line break or a NUL, or is not valid UTF-8")
		}
	})
	return err
}

// each calls f for each text of s that can have variables. The maps are copies then.
func (s *MCPServer) each(f func(text *string)) {
	f(&s.Command)
	f(&s.URL)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		f(&s.Args[i])
	}
	for _, values := range []*map[string]string{&s.Env, &s.Headers} {
		*values = maps.Clone(*values)
		for name, value := range *values {
			f(&value)
			(*values)[name] = value
		}
	}
}

// Expanded returns s with the values of variables of the environment that lookup reads. The
// error is of kind [ErrUsage]: a variable is not set, or the result is not a server.
func (s MCPServer) Expanded(lookup func(name string) (value string, ok bool)) (MCPServer, error) {
	var err error
	s.each(func(text *string) {
		expanded, wrong := expandVariables(*text, lookup)
		*text, err = expanded, errors.Join(err, wrong)
	})
	if err == nil {
		err = s.check()
	}
	if err == nil && s.URL != "" && !isWebAddress(s.URL) {
		err = errors.New("its url does not begin with https:// or http:// and a host")
	}
	if err == nil && s.Command != "" && strings.Contains(s.Command, "/") && !filepath.IsAbs(s.Command) {
		err = errors.New("its command is a relative path; give the absolute path, or a name that PATH leads to")
	}
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return MCPServer{}, Usagef("MCP server %q: %s", s.Name, line)
	}
	return s, nil
}

// isWebAddress reports whether text begins like an address with a host.
func isWebAddress(text string) bool {
	rest, ok := strings.CutPrefix(text, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(text, "http://")
	}
	return ok && rest != "" && !strings.ContainsRune("/?#:", rune(rest[0])) && strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}

// expandVariables replaces ${NAME} and ${NAME:-TEXT}.
func expandVariables(text string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		inner, after, closed := strings.Cut(rest, "}")
		name, other, optional := strings.Cut(inner, ":-")
		if !closed || name == "" || strings.Trim(name, letters+"_") != "" {
			return "", errors.New("${ is not followed by the name of a variable and }")
		}
		value, set := lookup(name)
		switch {
		case set:
			b.WriteString(value)
		case optional:
			b.WriteString(other)
		default:
			return "", fmt.Errorf("the variable %s is not set", name)
		}
		text = after
	}
}

// MCPSecrets returns the values of servers that must not be shown, as entries "NAME=value"
// whose names end in _SECRET: those of headers, without the scheme of an authorization, and
// the passwords in URLs. Variables in Env are secrets by their own names.
func MCPSecrets(servers []MCPServer) (entries []string) {
	for _, s := range servers {
		for name, value := range s.Env {
			entries = append(entries, name+"="+value)
		}
		for _, value := range s.Headers {
			entries = append(entries, "HEADER_SECRET="+value)
			if _, credential, ok := strings.Cut(value, " "); ok {
				entries = append(entries, "HEADER_SECRET="+credential)
			}
		}
		if _, password, ok := strings.Cut(userOfURL(s.URL), ":"); ok {
			entries = append(entries, "URL_SECRET="+password)
		}
	}
	slices.Sort(entries)
	return entries
}

// userOfURL returns what is before the @ of a URL's host. Package net/url has tables that
// every program would fill before main.
func userOfURL(url string) string {
	_, rest, _ := strings.Cut(url, "//")
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		rest = rest[:i]
	}
	return rest[:max(strings.LastIndex(rest, "@"), 0)]
}

// MCPConfig returns servers as the JSON object mcpServers of [ParseMCPServers]. It cannot
// fail for servers that [CheckMCPServers] accepts.
func MCPConfig(servers []MCPServer) []byte {
	type entry struct {
		Type    string            `json:"type"`
		Command string            `json:"command,omitempty"`
		Args    []string          `json:"args,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
		URL     string            `json:"url,omitempty"`
		Headers map[string]string `json:"headers,omitempty"`
	}
	all := map[string]entry{}
	for _, s := range servers {
		all[s.Name] = entry{s.Type(), s.Command, s.Args, s.Env, s.URL, s.Headers}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		panic(err) // strings always marshal
	}
	return text
}

// Type returns stdio, http or sse.
func (s MCPServer) Type() string {
	switch {
	case s.Command != "":
		return "stdio"
	case s.SSE:
		return "sse"
	}
	return "http"
}
