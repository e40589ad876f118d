package control

import (
	"net"
	"time"
)

// For tests of package control_test.
const (
	ProtocolVersion = protocolVersion
	MaxSocketName   = maxSocketName
)

var (
	IsName     = isName
	Listen     = listen
	SocketPath = socketPath
)

func (s *Store) Socket(e Entry) string   { return s.socket(e) }
func (s *Store) Folder(e Entry) string   { return s.folder(e) }
func (s *Store) LockFile(e Entry) string { return s.lockFile(e) }

func (m *Manager) SetLogSize(n int64)            { m.logSize = n }
func (m *Manager) SetPeer(f func(net.Conn) bool) { m.peer = f }
func (c *Client) SetStopLimit(d time.Duration)   { c.stopLimit = d }
func (c *Client) AllowAnyPeer()                  { c.anyPeer = true }
