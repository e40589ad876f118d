package control

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// For tests of package control_test.
const (
	ProtocolVersion = protocolVersion
	MaxSocketName   = maxSocketName
)

var (
	IdentityOf   = identityOf
	IsName       = isName
	Listen       = listen
	RemoveSocket = removeSocket
	SocketPath   = socketPath
)

func (s *Settings) Request() agent.Request { return s.request() }

func (s SinkSpec) Open(environ []string) (Sink, error) { return s.open(environ) }

func (id Identity) Environ(native, workdir string) []string { return id.environ(native, workdir) }

func (s *Store) Dir() string             { return s.dir }
func (s *Store) Socket(e Entry) string   { return s.socket(e) }
func (s *Store) Folder(e Entry) string   { return s.folder(e) }
func (s *Store) LockFile(e Entry) string { return s.lockFile(e) }

func (s *Store) Save(ctx context.Context, e Entry) error { return s.save(ctx, e) }

func (s *Store) Update(ctx context.Context, id string, change func(*Entry) error) error {
	return s.update(ctx, id, change)
}

// Locks returns the locks that callbacks of a session may take while the session waits
// for them.
func (m *Manager) Locks(handle SessionHandle) map[string]sync.Locker {
	return map[string]sync.Locker{"entry": &m.find(handle).mu, "manager": &m.mu}
}

// Signal lets the goroutine that keeps the entry of a session look for changes.
func (m *Manager) Signal(handle SessionHandle) { m.find(handle).signal() }

func (m *Manager) SetLogSize(n int64)            { m.logSize = n }
func (m *Manager) SetPeer(f func(net.Conn) bool) { m.peer = f }
func (c *Client) SetStopLimit(d time.Duration)   { c.stopLimit = d }
func (c *Client) AllowAnyPeer()                  { c.anyPeer = true }
