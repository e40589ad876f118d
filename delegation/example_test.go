package delegation_test

import (
	"context"
	"fmt"
	"log"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
)

// A program gives its agent a tool that runs others, which can only read.
func ExampleBroker_Run() {
	b, err := delegation.New(delegation.Settings{Workdir: "/home/me/project", Access: agent.AccessRead, Runs: 10})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	answer, err := b.Run(context.Background(), delegation.Task{Prompt: "Review the last commit."}, func(line string) {
		log.Print(line)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text)
}
