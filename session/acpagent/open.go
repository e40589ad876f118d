package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

// check refuses what sessions cannot be given.
func (p sessionParams) check() error {
	switch {
	case p.Workdir == "":
		return invalid("cwd is missing")
	case !filepath.IsAbs(p.Workdir):
		return invalid("cwd %q is not an absolute path", p.Workdir)
	}
	for _, dir := range p.Directories {
		if !filepath.IsAbs(dir) {
			return invalid("additional directory %q is not an absolute path", dir)
		}
	}
	return nil
}

// servers returns the MCP servers that the client wants. Their names become names that
// every runtime takes.
func (p sessionParams) servers() (servers []agent.MCPServer, err error) {
	for _, s := range p.MCPServers {
		if s.Type != "" && s.Type != "stdio" && s.Type != "http" && s.Type != "sse" {
			return nil, invalid("MCP server %q: the type %q is not one of stdio, http, sse", s.Name, s.Type)
		}
		servers = append(servers, agent.MCPServer{
			Name: serverName(s.Name), Command: s.Command, Args: s.Args, Env: values(s.Env),
			URL: s.URL, Headers: values(s.Headers), SSE: s.Type == "sse",
		})
	}
	if err := agent.CheckMCPServers(servers); err != nil {
		return nil, invalid("%v; nothing was started", err)
	}
	return servers, nil
}

// serverName returns name without what [agent.MCPServer] does not allow in a name.
func serverName(name string) string {
	words := strings.FieldsFunc(name, func(c rune) bool {
		return c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	name = strings.Join(words, "_")
	return name[:min(len(name), agent.MaxMCPName)]
}

func values(variables []variable) map[string]string {
	all := make(map[string]string, len(variables))
	for _, v := range variables {
		all[v.Name] = v.Value
	}
	return all
}

// newSession starts a session.
func (c *connection) newSession(ctx context.Context, p sessionParams) (answer, error) {
	servers, err := p.servers()
	if err != nil {
		return answer{}, err
	}
	settings := c.server.Start.Settings
	settings.Workdir = p.Workdir
	settings.AddDirs = slices.Concat(settings.AddDirs, p.Directories)
	m, err := c.manager(ctx, settings)
	if err != nil {
		return answer{}, err
	}
	s := c.newConversation(m, settings)
	s.servers = servers
	if err := c.open(ctx, s, ""); err != nil {
		return answer{}, err
	}
	result := s.state()
	result.SessionID = s.id
	return answer{result, s.goLive}, nil
}

// open starts or resumes a session and adds it to those of the client.
func (c *connection) open(ctx context.Context, s *conversation, resume string) error {
	c.mu.Lock()
	if len(c.sessions)+c.opening >= maxSessions {
		c.mu.Unlock()
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "too many sessions are open; close one"}
	}
	c.opening++
	c.mu.Unlock()
	err := s.begin(ctx, resume)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opening--
	if err == nil {
		c.sessions[s.id] = s
	}
	return err
}

// closeSession ends a session, and the turn that it has.
func (c *connection) closeSession(ctx context.Context, params json.RawMessage, done func(answer, error)) {
	var p sessionParams
	err := decode(params, &p)
	var s *conversation
	if err == nil {
		s, err = c.session(p.SessionID)
	}
	if err != nil {
		done(answer{}, err)
		return
	}
	c.mu.Lock()
	delete(c.sessions, p.SessionID)
	c.mu.Unlock()
	go func() {
		ctx, cancel := context.WithTimeout(ctx, stopTime)
		defer cancel()
		s.close(ctx)
		done(answer{result: empty{}}, nil)
	}()
}

// storeOf returns where a manager keeps its sessions.
func storeOf(m *control.Manager) (*control.Store, error) {
	if m.Store != nil {
		return m.Store, nil
	}
	environ := os.Environ()
	if m.Runner != nil && m.Runner.Environ != nil {
		environ = m.Runner.Environ
	}
	dir, err := control.DefaultDir(environ)
	return control.NewStore(dir), err
}

// resumeSession resumes a session that has ended. With replay, the client first gets the
// conversation.
func (c *connection) resumeSession(ctx context.Context, p sessionParams, replay bool) (answer, error) {
	if s, err := c.session(p.SessionID); err == nil {
		return c.reopen(ctx, s, p, replay)
	}
	servers, err := p.servers()
	if err != nil {
		return answer{}, err
	}
	m, err := c.manager(ctx, control.Settings{Workdir: p.Workdir})
	if err != nil {
		return answer{}, err
	}
	store, err := storeOf(m)
	if err != nil {
		return answer{}, err
	}
	e, err := store.Get(p.SessionID)
	switch {
	case err != nil && !errors.Is(err, control.ErrUnknown):
		return answer{}, err
	case err != nil || e.SessionID != p.SessionID:
		return answer{}, &jsonrpc.Error{Code: codeNotFound, Message: "there is no session " + p.SessionID}
	case !sameDirectory(e.Workdir, p.Workdir):
		return answer{}, p.elsewhere(e.Workdir)
	case !e.State.Ended():
		return answer{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "session " + e.SessionID + " is running in another process; stop it first"}
	}
	settings := e.Settings
	settings.TrustWorkspace = c.server.Start.TrustWorkspace
	if len(p.Directories) > 0 {
		settings.AddDirs = p.Directories
	}
	s := c.newConversation(m, settings)
	s.id, s.servers = e.SessionID, servers
	if replay {
		if err := s.replay(ctx, store, e); err != nil {
			return answer{}, err
		}
	}
	if err := c.open(ctx, s, e.SessionID); err != nil {
		return answer{}, err
	}
	return answer{s.state(), s.goLive}, nil
}

// reopen answers a client that loads a session which it has open.
func (c *connection) reopen(ctx context.Context, s *conversation, p sessionParams, replay bool) (answer, error) {
	s.mu.Lock()
	workdir := s.settings.Workdir
	s.mu.Unlock()
	if !sameDirectory(workdir, p.Workdir) {
		return answer{}, p.elsewhere(workdir)
	}
	if replay {
		store, err := storeOf(s.manager)
		if err != nil {
			return answer{}, err
		}
		e, err := store.Get(s.id)
		if err == nil {
			err = s.replay(ctx, store, e)
		}
		if err != nil {
			return answer{}, err
		}
	}
	return answer{result: s.state()}, nil
}

// replay sends the conversation of a session, as far as its log has it.
func (s *conversation) replay(ctx context.Context, store *control.Store, e control.Entry) error {
	if e.Folder == "" {
		return nil // it was not served, so it has no log
	}
	t := newTranslator(e.Workdir, "log", false)
	client := control.Client{Store: store}
	return client.Watch(ctx, e, control.WatchOptions{Last: -1}, control.Watcher{Record: func(r *control.LogRecord) error {
		switch {
		case r.Message != "":
			s.write(t.user(r.Message))
		case r.Event != nil:
			for _, u := range t.updates(r.Event) {
				s.write(u)
			}
		}
		return context.Cause(s.c.ctx)
	}})
}

// elsewhere returns the error of a session that is of another directory.
func (p sessionParams) elsewhere(workdir string) error {
	return invalid("session %s is of %s, not of %s", p.SessionID, workdir, p.Workdir)
}

// sameDirectory reports whether two absolute paths lead to one directory.
func sameDirectory(a, b string) bool {
	real := func(path string) string {
		found, err := filepath.EvalSymlinks(path)
		if err != nil {
			return filepath.Clean(path)
		}
		return found
	}
	return real(a) == real(b)
}

// pageSize is how many sessions an answer lists.
const pageSize = 100

func (p listParams) check() error {
	if p.Workdir != "" && !filepath.IsAbs(p.Workdir) {
		return invalid("cwd %q is not an absolute path", p.Workdir)
	}
	return nil
}

// list lists the sessions that the client can load or resume.
func (c *connection) list(ctx context.Context, p listParams) (answer, error) {
	m, err := c.manager(ctx, control.Settings{Workdir: cmp.Or(p.Workdir, "/")})
	if err != nil {
		return answer{}, err
	}
	store, err := storeOf(m)
	if err != nil {
		return answer{}, err
	}
	entries, _, err := store.List(control.Filter{})
	if err != nil {
		return answer{}, err
	}
	result := listResult{Sessions: []sessionInfo{}}
	found := p.After == ""
	for _, e := range entries {
		switch {
		case e.NativeID == "" || e.Fresh, p.Workdir != "" && !sameDirectory(e.Workdir, p.Workdir),
			c.server.Start.Runtime != "" && e.Runtime != c.server.Start.Runtime:
			continue
		case !found:
			found = e.SessionID == p.After
			continue
		case len(result.Sessions) == pageSize:
			result.Next = result.Sessions[pageSize-1].SessionID
			return answer{result: result}, nil
		}
		result.Sessions = append(result.Sessions, sessionInfo{e.SessionID, e.Workdir, e.Name, latest(e).UTC().Format(time.RFC3339)})
	}
	if !found {
		return answer{}, invalid("where the list is to continue is not known any more: %q", p.After)
	}
	return answer{result: result}, nil
}

// latest returns when something is known to have happened in a session.
func latest(e control.Entry) time.Time {
	return slices.MaxFunc([]time.Time{e.Created, e.Started, e.Ready, e.Ended}, time.Time.Compare)
}

// state returns the settings of a session, as the client gets them.
func (s *conversation) state() sessionResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sessionResult{Modes: s.modes(), Options: s.options()}
}

// accesses are the modes of a session.
var accesses = map[agent.Access]mode{
	agent.AccessRead:  {"read", "Read", "reads files, changes nothing"},
	agent.AccessWrite: {"write", "Write", "edits files in the workdir, asks for the rest"},
	agent.AccessFull:  {"full", "Full", "does everything without asking"},
}
