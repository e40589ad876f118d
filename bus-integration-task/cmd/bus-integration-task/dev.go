package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/board"
	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/tasklog"
	"github.com/busdk/bus-integration-task/worker/settings"
)

func boardCommand() *cli.Command {
	return &cli.Command{
		Name: "board", Usage: "serve a local page of all tasks, and print its address",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:0", Usage: "loopback `ADDRESS` to listen on"},
			&cli.BoolFlag{Name: "published", Usage: "listen on any address: only for a container whose port is published on the loopback of its host"},
		},
		Action: runBoard,
	}
}

func runBoard(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	log, err := openLog(c)
	if err != nil {
		return err
	}
	return board.Serve(c.Context, boardOptions(c, log, c.String("listen")))
}

func boardOptions(c *cli.Context, log *tasklog.Log, listen string) board.Options {
	return board.Options{
		Log: boardLog{log}, Listen: listen, Published: c.Bool("published"), Warn: warnTo(c), Sender: sender(),
		Started: func(url string) { fmt.Fprintf(c.App.Writer, "board %s\n", url) },
	}
}

// boardLog is a log as the board wants it.
type boardLog struct{ log *tasklog.Log }

func (l boardLog) Follow(ctx context.Context, each func(task.Event), caughtUp func(), lost func(error)) error {
	log := *l.log
	log.Disconnected = func(err error) {
		if l.log.Disconnected != nil {
			l.log.Disconnected(err)
		}
		lost(err)
	}
	return log.Follow(ctx, func(e task.Event) error { each(e); return nil }, caughtUp)
}

func (l boardLog) Task(ctx context.Context, ref string, each func(task.Event)) error {
	return l.log.Read(ctx, ref, "", func(e task.Event) error { each(e); return nil })
}

func (l boardLog) Publish(ctx context.Context, name string, p task.Payload) error {
	_, err := l.log.Add(ctx, name, p)
	return err
}

func devCommand() *cli.Command {
	return &cli.Command{
		Name:  "dev",
		Usage: "run a server, a worker and the board in one process, for one machine",
		Description: "The events and the key of tokens are kept in --store. The token for task commands is in its\n" +
			"file client-token, which is new at each start. An interrupt ends all three: a running turn may\n" +
			"take the time of --hand-back, and is then handed back. With --agent-backend container it also\n" +
			"runs the containers, with docker or podman.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "store", Usage: "keep everything in this `FOLDER`, outside any repository"},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8081", Usage: "loopback `ADDRESS` of the Bus Events API"},
			&cli.StringFlag{Name: "board", Value: "127.0.0.1:0", Usage: "loopback `ADDRESS` of the board"},
		}, append(integrationFlags(), slices.DeleteFunc(workerFlags(), func(f cli.Flag) bool {
			return hasFlag(connectionFlags(), f.Names()[0]) // dev has its server
		})...)...),
		Action: runDev,
	}
}

// devLifetime is how long the tokens of dev are valid.
const devLifetime = 30 * 24 * time.Hour

func runDev(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	if c.String("store") == "" {
		return agent.Usagef("--store is missing; name a folder outside any repository")
	}
	s, err := settings.Resolve(settings.FromContext(c), os.Environ())
	if err != nil {
		return err
	}
	if err := checkStore(c.String("store"), s.WorkspaceRoot); err != nil {
		return err
	}
	if err := boardOptions(c, &tasklog.Log{}, c.String("board")).Check(); err != nil {
		return fmt.Errorf("--board: %w", err)
	}
	integration, err := devIntegration(c, s)
	if err != nil {
		return err
	}
	client := &events.Client{Source: source}
	w, err := newWorker(c, s, newLog(c, client))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return agent.Usagef("--listen: %v", err)
	}
	defer l.Close()
	if client.URL = "http://" + l.Addr().String(); client.Check() != nil {
		return agent.Usagef("--listen %q: the API of dev is for this machine only; use 127.0.0.1:PORT", c.String("listen"))
	}
	d, err := openDev(c)
	if err != nil {
		return err
	}
	defer d.server.Close()
	client.Token = events.StaticToken(d.workerToken)
	if integration != nil {
		integration.Bus = client
	}
	// The server ends after what uses it.
	serving, stopServer := context.WithCancel(context.WithoutCancel(c.Context))
	defer stopServer()
	served := make(chan error, 1)
	go func() { served <- d.server.Serve(serving, l) }()
	fmt.Fprintf(c.App.Writer, "events %s\ntoken %s\n", client.URL, d.tokenFile)
	err = together(c.Context, served,
		func(ctx context.Context) error { return withContainers(ctx, integration, w.Run) },
		func(ctx context.Context) error {
			user := *client
			user.Source = userSource
			return board.Serve(ctx, boardOptions(c, newLog(c, &user), c.String("board")))
		})
	stopServer()
	return errors.Join(err, <-served)
}

// checkStore refuses a folder for secrets that agents or commits could reach.
func checkStore(store, workspace string) error {
	store, err := filepath.Abs(store)
	if err != nil {
		return err
	}
	existing := store
	for existing != filepath.Dir(existing) {
		if _, err := os.Stat(existing); err == nil {
			break
		}
		existing = filepath.Dir(existing)
	}
	if existing, err = filepath.EvalSymlinks(existing); err != nil {
		return agent.Usagef("--store: %v", err)
	}
	for dir := existing; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return agent.Usagef("--store %s is in the Git repository %s; it has secrets, so name a folder outside", store, dir)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil // reported with the setting
	}
	if inside, err := filepath.Rel(root, existing); workspace != "" && err == nil && filepath.IsLocal(inside) {
		return agent.Usagef("--store %s is in --workspace-root; it has secrets, so name a folder outside", store)
	}
	return nil
}

// together runs functions until all have ended. When one ends, or what they use, the
// context of the others does.
func together(ctx context.Context, used chan error, run ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(run))
	for _, f := range run {
		go func() { ended <- f(ctx) }()
	}
	left := len(run)
	var err error
	select {
	case err = <-ended:
		left--
	case err = <-used:
		used <- nil
	}
	stop()
	for range left {
		err = errors.Join(err, <-ended)
	}
	return err
}

// dev is what dev has in its store.
type dev struct {
	server      *eventserver.Server
	workerToken string
	tokenFile   string
}

// openDev opens the store, which fails if another process has it, and writes the token for
// task commands.
func openDev(c *cli.Context) (*dev, error) {
	store, err := filepath.Abs(c.String("store"))
	if err == nil {
		err = os.MkdirAll(store, 0o700)
	}
	if err != nil {
		return nil, err
	}
	secret, err := devSecret(filepath.Join(store, "secret"))
	if err != nil {
		return nil, err
	}
	opening, cancel := context.WithTimeout(c.Context, time.Minute)
	defer cancel()
	d := &dev{tokenFile: filepath.Join(store, "client-token")}
	if d.server, err = eventserver.Open(opening, eventserver.Config{Secret: secret, Store: filepath.Join(store, "events"), Log: warnTo(c)}); err != nil {
		return nil, err
	}
	token := func(scopes []string) string {
		text, failed := eventserver.Mint(secret, eventserver.MintOptions{Subject: "local", Scopes: scopes, Lifetime: devLifetime})
		err = errors.Join(err, failed)
		return text
	}
	d.workerToken = token(scopes["worker"])
	clientToken := token(scopes["client"])
	if err == nil {
		err = writeSecret(d.tokenFile, clientToken+"\n")
	}
	if err != nil {
		d.server.Close()
		return nil, err
	}
	return d, nil
}

// devSecret returns the key of tokens in a file, which it makes if it is missing.
func devSecret(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.WriteString(rand.Text() + rand.Text())
		err = errors.Join(err, f.Close())
	} else if errors.Is(err, os.ErrExist) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}
