package main

import (
	"fmt"
	"os"
	"os/user"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/tasklog"
)

const source = "bus-integration-task"

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
		&cli.BoolFlag{Name: "allow-insecure", Usage: "send the token over http to another machine"},
	}
}

// openLog returns the log that the flags of a command or of one above it select.
func openLog(c *cli.Context) (*tasklog.Log, error) {
	return connect(c, c.String("events-url"), c.String("events-token-file"), c.Bool("allow-insecure"))
}

func connect(c *cli.Context, url, tokenFile string, insecure bool) (*tasklog.Log, error) {
	token, err := events.ResolveToken(events.TokenOptions{File: tokenFile, Getenv: os.Getenv})
	if err != nil {
		return nil, agent.Usagef("%v", err)
	}
	retry, err := events.RetryFromEnvironment(os.Getenv)
	if err != nil {
		return nil, agent.Usagef("%v", err)
	}
	return &tasklog.Log{
		Client:  &events.Client{URL: url, Token: token, Source: source, Retry: retry, AllowInsecure: insecure},
		Skipped: func(err error) { warnTo(c)(err.Error()) },
	}, nil
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
