package verify_test

import (
	"context"
	"fmt"
	"log"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// The parrot is a runtime of a third party, whose package registers it. Its CLI speaks
// the OpenAI Chat Completions API.
func ExampleRun() {
	report, err := verify.Run(context.Background(), verify.Target{
		Runtime: "parrot",
		Model:   "grey",
		Env: func(s *modeltest.Server) []string {
			return []string{"PARROT_URL=" + s.OpenAIURL(), "PARROT_KEY=not-a-secret"}
		},
		Keeps: []string{".parrot"},
		Known: map[string]string{"http-403": "it reports a server error"},
	}, verify.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range report.Broken() {
		fmt.Println(report.Runtime, report.Version, r.Check, r.Detail)
	}
}
