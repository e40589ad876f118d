package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
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
		Flags:  []cli.Flag{&cli.StringFlag{Name: "listen", Value: "127.0.0.1:0", Usage: "loopback `ADDRESS` to listen on"}},
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
	return serveBoard(c.Context, c, log, c.String("listen"))
}

func serveBoard(ctx context.Context, c *cli.Context, log *tasklog.Log, listen string) error {
	return board.Serve(ctx, board.Options{
		Log: boardLog{log}, Listen: listen, Warn: warnTo(c), Sender: sender(),
		Started: func(url string) { fmt.Fprintf(c.App.Writer, "board %s\n", url) },
	})
}

// boardLog is a log as the board wants it.
type boardLog struct{ log *tasklog.Log }

func (l boardLog) Follow(ctx context.Context, each func(task.Event)) error {
	return l.log.Follow(ctx, func(e task.Event) error { each(e); return nil }, func() {})
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
			"file client-token, which is new at each start.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "store", Required: true, Usage: "keep everything in this `FOLDER`, outside any repository"},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8081", Usage: "`ADDRESS` of the Bus Events API"},
			&cli.StringFlag{Name: "board", Value: "127.0.0.1:0", Usage: "`ADDRESS` of the board"},
		}, workerFlags()...),
		Action: runDev,
	}
}

// devLifetime is how long the tokens of dev are valid.
const devLifetime = 30 * 24 * time.Hour

func runDev(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	s, err := settings.Resolve(settings.FromContext(c), os.Environ())
	if err != nil {
		return err
	}
	store, err := filepath.Abs(c.String("store"))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return agent.Usagef("--listen: %v", err)
	}
	defer l.Close()
	url := "http://" + l.Addr().String()
	if err := os.MkdirAll(store, 0o700); err != nil {
		return err
	}
	secret, err := devSecret(filepath.Join(store, "secret"))
	if err != nil {
		return err
	}
	token := func(scopes []string) (string, error) {
		return eventserver.Mint(secret, eventserver.MintOptions{Subject: "local", Scopes: scopes, Lifetime: devLifetime})
	}
	workerToken, err := token(scopes["worker"])
	if err != nil {
		return err
	}
	clientToken, err := token(scopes["client"])
	if err != nil {
		return err
	}
	tokenFile := filepath.Join(store, "client-token")
	if err := os.WriteFile(tokenFile, []byte(clientToken+"\n"), 0o600); err != nil {
		return err
	}
	log := &tasklog.Log{Client: &events.Client{URL: url, Token: events.StaticToken(workerToken), Source: source}, Skipped: func(err error) { warnTo(c)(err.Error()) }}
	w, err := newWorker(c, s, log)
	if err != nil {
		return err
	}
	// The server ends after what uses it.
	serving, stopServer := context.WithCancel(context.WithoutCancel(c.Context))
	defer stopServer()
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- serve(serving, l, eventserver.Config{Secret: secret, Store: filepath.Join(store, "events"), Log: warnTo(c)}, func() { close(ready) })
	}()
	select {
	case <-ready:
	case err := <-served:
		return err
	}
	fmt.Fprintf(c.App.Writer, "events %s\ntoken %s\n", url, tokenFile)
	using, stop := context.WithCancel(c.Context)
	defer stop()
	parts := make(chan error, 2)
	go func() { parts <- w.Run(using) }()
	go func() { parts <- serveBoard(using, c, log, c.String("board")) }()
	left := 2
	select {
	case err = <-parts:
		left--
	case err = <-served:
		served <- nil
	}
	stop()
	for range left {
		err = errors.Join(err, <-parts)
	}
	stopServer()
	return errors.Join(err, <-served)
}

// devSecret returns the key of tokens in a file, which it makes if it is missing.
func devSecret(name string) ([]byte, error) {
	secret, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		secret = []byte(rand.Text() + rand.Text())
		err = os.WriteFile(name, secret, 0o600)
	}
	return secret, err
}
