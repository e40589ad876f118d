package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/eventserver"
)

const (
	secretVariable  = "BUS_API_JWT_SECRET"        // key of tokens
	clusterVariable = "BUS_EVENTS_CLUSTER_SECRET" // password between the servers of a cluster
)

func eventsCommand() *cli.Command {
	return &cli.Command{
		Name:  "events",
		Usage: "serve the Bus Events API, and mint tokens for it",
		Subcommands: []*cli.Command{
			{
				Name: "serve", Usage: "serve the Bus Events API over NATS JetStream; the key of tokens is in " + secretVariable,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8081", Usage: "`ADDRESS` to listen on"},
					&cli.StringFlag{Name: "store", Usage: "keep the events in this `FOLDER`"},
					&cli.StringFlag{Name: "nats", Usage: "`URL` of a NATS server with JetStream to use instead of --store"},
					&cli.StringFlag{Name: "nats-credentials", Usage: "`FILE` with the credentials for --nats: a credentials file of NATS, or a line with user:password"},
					&cli.IntFlag{Name: "replicas", Usage: "number of copies of each event in a cluster"},
					&cli.DurationFlag{Name: "sync-every", Usage: "force events to the disk so often, instead of before each is accepted"},
					&cli.Int64Flag{Name: "max-bytes", Usage: "refuse events when the log has this size"},
					&cli.IntFlag{Name: "max-streams", Value: 2048, Usage: "maximum number of open streams of an identity; a worker has one"},
					&cli.StringFlag{Name: "cluster", Usage: "`NAME` of the cluster to join; the password between its servers is in " + clusterVariable},
					&cli.StringFlag{Name: "server-name", Usage: "`NAME` of this server in the cluster, the same after a restart"},
					&cli.StringFlag{Name: "cluster-listen", Usage: "private `ADDRESS` for the other servers"},
					&cli.StringFlag{Name: "cluster-advertise", Usage: "`ADDRESS` at which the other servers reach this one, if it is not --cluster-listen"},
					&cli.StringSliceFlag{Name: "cluster-route", Usage: "`ADDRESS` of another server; repeat it for each"},
				},
				Action: serveEvents,
			},
			{
				Name: "token", Usage: "print a token for the API; the key is in " + secretVariable,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "subject", Value: "local", Usage: "identity that owns what is published; all who share tasks have the same"},
					&cli.StringFlag{Name: "for", Value: "client", Usage: "worker, client or containers: the scopes that it needs"},
					&cli.StringSliceFlag{Name: "scope", Usage: "scope of the token, instead of --for; can be repeated"},
					&cli.DurationFlag{Name: "lifetime", Value: 24 * time.Hour, Usage: "how long the token is valid"},
					&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the token to a `FILE` that only you can read, instead of printing it"},
				},
				Action: mintToken,
			},
		},
	}
}

// scopes are what the parts of a deployment need.
var scopes = map[string][]string{
	"worker": {
		eventserver.ScopeSend, eventserver.ScopeListen, eventserver.ScopeTaskRead, eventserver.ScopeTaskSend,
		eventserver.ScopeTaskReply, eventserver.ScopeTaskClaim, eventserver.ScopeContainerRun, eventserver.ScopeContainerDelete,
	},
	"containers": {eventserver.ScopeSend, eventserver.ScopeListen, eventserver.ScopeContainerRun, eventserver.ScopeContainerDelete},
	"client":     {eventserver.ScopeSend, eventserver.ScopeListen, eventserver.ScopeTaskRead, eventserver.ScopeTaskSend},
}

func tokenSecret() ([]byte, error) {
	secret := os.Getenv(secretVariable)
	if len(secret) < eventserver.MinSecretBytes {
		return nil, agent.Usagef("%s has %d bytes, not at least %d; set it to a random secret, such as the output of: openssl rand -hex 32",
			secretVariable, len(secret), eventserver.MinSecretBytes)
	}
	return []byte(secret), nil
}

func serveEvents(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	if (c.String("store") == "") == (c.String("nats") == "") {
		return agent.Usagef("events serve needs either --store or --nats")
	}
	cluster, err := clusterOf(c)
	if err != nil {
		return err
	}
	secret, err := tokenSecret()
	if err != nil {
		return err
	}
	config := eventserver.Config{
		Cluster: cluster,
		Secret:  secret, Store: c.String("store"), NATS: c.String("nats"), NATSCredentials: c.String("nats-credentials"),
		Replicas: c.Int("replicas"), SyncEvery: c.Duration("sync-every"), MaxBytes: c.Int64("max-bytes"), MaxStreams: c.Int("max-streams"), Log: warnTo(c),
	}
	if err := config.Check(); err != nil {
		return agent.Usagef("%v", err)
	}
	l, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return agent.Usagef("--listen: %v", err)
	}
	defer l.Close()
	opening, cancel := context.WithTimeout(c.Context, time.Minute)
	defer cancel()
	server, err := eventserver.Open(opening, config)
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Fprintf(c.App.Writer, "serving http://%s\n", l.Addr())
	return server.Serve(c.Context, l)
}

// clusterOf returns the cluster that the flags describe, nil for none.
func clusterOf(c *cli.Context) (*eventserver.Cluster, error) {
	if c.String("cluster") == "" {
		for _, name := range []string{"server-name", "cluster-listen", "cluster-advertise", "cluster-route"} {
			if c.IsSet(name) {
				return nil, agent.Usagef("--%s is only for a cluster; add --cluster NAME", name)
			}
		}
		return nil, nil
	}
	for _, name := range []string{"server-name", "cluster-listen", "cluster-route", "store"} {
		if !c.IsSet(name) {
			return nil, agent.Usagef("--cluster needs --%s too", name)
		}
	}
	addresses := append(c.StringSlice("cluster-route"), c.String("cluster-listen"))
	if c.IsSet("cluster-advertise") {
		addresses = append(addresses, c.String("cluster-advertise"))
	}
	for _, address := range addresses {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, agent.Usagef("--cluster-listen, --cluster-advertise and --cluster-route: %v", err)
		}
	}
	secret := os.Getenv(clusterVariable)
	if secret == "" {
		return nil, agent.Usagef("%s is not set; set it to the same random secret on all servers, such as the output of: openssl rand -hex 32", clusterVariable)
	}
	return &eventserver.Cluster{
		Name: c.String("cluster"), Server: c.String("server-name"), Listen: c.String("cluster-listen"), Advertise: c.String("cluster-advertise"), Routes: c.StringSlice("cluster-route"), Secret: secret,
	}, nil
}

func mintToken(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	wanted := c.StringSlice("scope")
	if len(wanted) == 0 {
		if wanted = scopes[c.String("for")]; wanted == nil {
			return agent.Usagef("--for %q: use worker, client or containers", c.String("for"))
		}
	}
	secret, err := tokenSecret()
	if err != nil {
		return err
	}
	token, err := eventserver.Mint(secret, eventserver.MintOptions{
		Subject: c.String("subject"), Scopes: wanted, Lifetime: c.Duration("lifetime"),
	})
	if err != nil {
		return agent.Usagef("%v", err)
	}
	if name := c.String("output"); name != "" {
		return writeSecret(name, token+"\n")
	}
	_, err = fmt.Fprintln(c.App.Writer, token)
	return err
}

// writeSecret replaces a file by one that only the user can read.
func writeSecret(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".token-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing once it has been renamed
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}

func noArguments(c *cli.Context) error {
	if c.NArg() > 0 {
		return agent.Usagef("%s takes no arguments, but got %.80q", c.Command.Name, strings.Join(c.Args().Slice(), " "))
	}
	return nil
}
