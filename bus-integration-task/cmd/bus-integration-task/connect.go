package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/tasklog"
)

// The sources of events: of workers, and of users.
const (
	source     = "bus-integration-task"
	userSource = "bus-task"
)

// connectionFlags are the flags with which every client finds the log.
func connectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "events-url", Value: "http://127.0.0.1:8081", Usage: "connect to this Bus Events API",
			EnvVars: []string{"BUS_TASK_EVENTS_URL", "BUS_EVENTS_API_URL"},
		},
		&cli.StringFlag{
			Name: "events-token-file", Aliases: []string{"token-file"},
			Usage: "read the token from a file instead of BUS_EVENTS_TOKEN_FILE or BUS_API_TOKEN",
		},
		&cli.BoolFlag{
			Name: "allow-insecure", Usage: "send the token over http to another machine",
			EnvVars: []string{insecureVariable},
		},
	}
}

// insecureVariable allows http to other machines, such as those of a private network of
// containers.
const insecureVariable = "BUS_TASK_ALLOW_INSECURE"

// openLog returns the log that the flags of a command or of one above it select.
func openLog(c *cli.Context) (*tasklog.Log, error) {
	log, err := connect(c, c.String("events-url"), c.String("events-token-file"), c.Bool("allow-insecure"))
	if err == nil {
		log.Client.Source = userSource
	}
	return log, err
}

// connect checks the URL and the token, and connects to nothing.
func connect(c *cli.Context, url, tokenFile string, insecure bool) (*tasklog.Log, error) {
	client := &events.Client{URL: url, Source: source, AllowInsecure: insecure}
	err := client.Check()
	if err == nil {
		client.Token, err = events.ResolveToken(events.TokenOptions{File: tokenFile, Getenv: os.Getenv})
	}
	if err == nil {
		client.Retry, err = events.RetryFromEnvironment(os.Getenv)
	}
	if err != nil {
		return nil, agent.Usagef("%v", err)
	}
	return newLog(c, client), nil
}

func newLog(c *cli.Context, client *events.Client) *tasklog.Log {
	return &tasklog.Log{
		Client:       client,
		Skipped:      func(err error) { warnTo(c)(err.Error()) },
		Disconnected: func(err error) { warnTo(c)(err.Error() + "; trying again") },
	}
}

// advise adds to an error of the log what to do about it.
func advise(err error) error {
	switch failed, ok := errors.AsType[*events.Error](err); {
	case !ok:
		return err
	case errors.Is(err, events.ErrUnauthorized) || errors.Is(err, events.ErrForbidden):
		return fmt.Errorf("%w; see events token --help", err)
	case errors.Is(err, events.ErrUnavailable) && failed.Status == 0:
		return fmt.Errorf("%w; check --events-url, and that the server is running", err)
	}
	return err
}

// warnTo returns a function that prints warnings.
func warnTo(c *cli.Context) func(string) {
	return func(line string) { fmt.Fprintln(c.App.ErrWriter, "bus-integration-task: "+oneLine(line)) }
}

// sender names the user in events.
func sender() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
