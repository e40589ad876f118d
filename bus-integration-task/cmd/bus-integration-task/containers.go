package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
	"github.com/busdk/bus-integration-task/worker/settings"
)

func containersCommand() *cli.Command {
	return &cli.Command{
		Name: "containers", Usage: "run the containers of workers with --agent-backend container",
		Subcommands: []*cli.Command{{
			Name: "serve", Usage: "run containers with docker or podman on this machine",
			Description: "The containers have the folders that a worker names, so every client whose token has the\n" +
				"scope container:run can use what this user can. The token is that of: events token --for containers",
			Flags: append(append(connectionFlags(), integrationFlags()...),
				&cli.IntFlag{Name: "max-runs", Value: 4, Usage: "maximum number of containers at a time"}),
			Action: serveContainers,
		}},
	}
}

// integrationFlags are the flags of a container integration.
func integrationFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "profile", Usage: "`NAME=IMAGE` of a profile that workers can name; can be repeated"},
		&cli.BoolFlag{Name: "process-sandbox", Usage: "run commands as processes of this user, without containers: only for commands that are trusted"},
	}
}

func serveContainers(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	log, err := openLog(c)
	if err != nil {
		return err
	}
	i, err := newIntegration(c, c.Int("max-runs"))
	if err != nil {
		return err
	}
	i.Bus = log.Client
	fmt.Fprintf(c.App.Writer, "containers %s\n", i.Engine.Name())
	if err := i.Serve(c.Context); c.Context.Err() == nil {
		return err
	}
	return nil
}

// newIntegration returns the integration that the flags describe, without its bus.
func newIntegration(c *cli.Context, maxRuns int) (*containers.Integration, error) {
	i := &containers.Integration{Profiles: map[string]string{}, MaxRuns: maxRuns, Failed: func(err error) { warnTo(c)(err.Error()) }}
	for _, text := range c.StringSlice("profile") {
		name, image, _ := strings.Cut(text, "=")
		if name == "" || image == "" {
			return nil, agent.Usagef("--profile %.80q: use NAME=IMAGE", text)
		}
		i.Profiles[name] = image
	}
	i.Name, _ = os.Hostname() // a label
	if c.Bool("process-sandbox") {
		i.Engine = &containers.Process{}
		return i, nil
	}
	engine, err := containers.Detect(c.Context)
	if err != nil {
		return nil, fmt.Errorf("%w; start one, or use --process-sandbox for commands that you trust", err)
	}
	i.Engine = engine
	return i, nil
}

// devIntegration returns the integration for the worker of dev; nil if it needs none.
func devIntegration(c *cli.Context, s settings.Settings) (*containers.Integration, error) {
	if s.AgentBackend != backend.NameContainer {
		for _, f := range integrationFlags() {
			if name := f.Names()[0]; c.IsSet(name) {
				return nil, agent.Usagef("--%s: only the backend %s uses it; remove it, or use --agent-backend %s", name, backend.NameContainer, backend.NameContainer)
			}
		}
		return nil, nil
	}
	i, err := newIntegration(c, s.MaxParallel)
	if err != nil {
		return nil, err
	}
	if _, known := i.Profiles[s.ContainerProfile]; !known && s.ContainerImage == "" {
		if !c.Bool("process-sandbox") {
			return nil, agent.Usagef("the image of the profile %s is unknown; use --profile %s=IMAGE or --container-image IMAGE", s.ContainerProfile, s.ContainerProfile)
		}
		i.Profiles[s.ContainerProfile] = "" // processes have no image
	}
	return i, nil
}

// withContainers runs a function while an integration, if there is one, serves it.
func withContainers(ctx context.Context, i *containers.Integration, run func(context.Context) error) error {
	if i == nil {
		return run(ctx)
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	served := make(chan error, 1)
	go func() { served <- i.Serve(serving) }()
	err := together(ctx, served, run)
	stop()
	if failed := <-served; !errors.Is(failed, context.Canceled) {
		err = errors.Join(err, failed)
	}
	return err
}
