package modeltest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/busdk/bus-agent/modeltest"
)

func Example() {
	srv, err := modeltest.Start(modeltest.Replies(
		modeltest.Reply{modeltest.Text{"Hello", " there"}, modeltest.Usage{Input: 12, Output: 3}},
	))
	if err != nil {
		panic(err)
	}
	defer srv.Close()

	// A real agent CLI would be started here with srv.OpenAIURL().
	answer, err := http.Post(srv.OpenAIURL()+"/responses", "application/json",
		strings.NewReader(`{"model":"gpt-5.5","reasoning":{"effort":"low"},"input":"Greet me."}`))
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(err)
	}

	asked := srv.ModelRequests()[0]
	fmt.Println(asked.Model(), asked.Effort(), asked.Texts("user"))
	fmt.Println(strings.Contains(string(body), "Hello there"))
	// Output:
	// gpt-5.5 low [Greet me.]
	// true
}

func ExampleScript() {
	// A script that looks at what it is asked: it calls a tool until it has
	// seen a result.
	script := func(r *modeltest.Request) modeltest.Reply {
		results := r.ToolResults()
		if len(results) == 0 {
			return modeltest.Reply{modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"date"}`}}
		}
		return modeltest.Reply{modeltest.Text{"The tool said: " + results[0].Output}}
	}
	srv, err := modeltest.Start(script, "my-model")
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	fmt.Println(len(srv.Requests()))
	// Output: 0
}
