//go:build linux

package eventserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/busdk/bus-integration-task/eventserver"
)

// childVariable makes a test binary a server; its value is a child in JSON.
const childVariable = "BUS_EVENTSERVER_TEST_CHILD"

// child is a server in a separate process. Exactly one of NATS and Store is set.
type child struct {
	NATS    *natsServer
	Store   string
	Cluster *eventserver.Cluster
	Disk    int // bytes of a separate disk for the store; 0 for none
	Ballast int // bytes of that disk that are taken until a line comes on the standard input
	Reserve int64
}

// natsServer is a NATS server with a user named "bus".
type natsServer struct {
	Port       int
	Password   string
	Store      string // "" for a server without JetStream
	MaxPayload int32
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runChild prints an address, and serves until the standard input ends.
func runChild(text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if c.NATS != nil {
		server, err := natsserver.NewServer(&natsserver.Options{
			ServerName: "nats", Host: "127.0.0.1", Port: c.NATS.Port, Username: "bus", Password: c.NATS.Password,
			JetStream: c.NATS.Store != "", StoreDir: c.NATS.Store, MaxPayload: c.NATS.MaxPayload, NoLog: true, NoSigs: true,
		})
		if err != nil {
			return err
		}
		server.Start()
		if !server.ReadyForConnections(time.Minute) {
			return fmt.Errorf("the NATS server did not start")
		}
		fmt.Println(server.Addr())
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	}
	ballast := filepath.Join(c.Store, "ballast")
	if c.Disk > 0 {
		if err := syscall.Mount("tmpfs", c.Store, "tmpfs", 0, fmt.Sprint("size=", c.Disk)); err != nil {
			return fmt.Errorf("disk: %w", err)
		}
		if err := os.WriteFile(ballast, make([]byte, c.Ballast), 0o600); err != nil {
			return err
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	s, err := eventserver.Open(ctx, eventserver.Config{
		Secret: secret, Store: c.Store, Cluster: c.Cluster, MinFreeBytes: c.Reserve, Heartbeat: time.Second,
		Log: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			if err := os.Remove(ballast); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			fmt.Println("removed")
		}
		stop()
	}()
	return s.Serve(ctx, l)
}

// process is a running child.
type process struct {
	address string
	command *exec.Cmd
	in      io.Writer
	out     *bufio.Scanner
	end     func()
}

// begin starts a child. It is killed when the test ends.
func begin(t *testing.T, c child) *process {
	t.Helper()
	p, err := tryBegin(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tryBegin(t *testing.T, c child) (*process, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childVariable+"="+string(text))
	if c.Disk > 0 { // mounted for this process alone
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Getuid() != 0 {
			command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		}
	}
	var failures strings.Builder
	command.Stderr = &failures
	in, err := command.StdinPipe() // ends with this process, whatever ends it
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &process{command: command, in: in, out: bufio.NewScanner(out)}
	p.end = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(failures.String())
		}
	})
	t.Cleanup(p.end)
	if !p.out.Scan() {
		p.end()
		return nil, fmt.Errorf("the child did not start: %s", failures.String())
	}
	p.address = p.out.Text()
	return p, nil
}

// kill ends the process with SIGKILL.
func (p *process) kill() { p.end() }

func (p *process) url() string { return "http://" + p.address }
