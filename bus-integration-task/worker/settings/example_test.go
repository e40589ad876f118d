package settings_test

import (
	"fmt"

	"github.com/busdk/bus-integration-task/worker/settings"
)

func ExampleResolve() {
	flags := map[string]string{"timeout": "5m"} // or settings.FromContext of a cli.Context
	s, err := settings.Resolve(
		func(name string) (string, bool) { text, ok := flags[name]; return text, ok },
		[]string{"BUS_TASK_RECIPIENT=bus-dev", "BUS_TASK_TIMEOUT=1h"},
	)
	fmt.Println(s.Recipient, s.Timeout, s.Source("timeout"), s.Source("commit"), err)

	_, err = settings.Resolve(func(string) (string, bool) { return "", false }, []string{"BUS_TASK_ONCE=perhaps"})
	fmt.Println(err)
	// Output:
	// bus-dev 5m0s --timeout built-in <nil>
	// BUS_TASK_ONCE: "perhaps" is not true or false
}

func ExampleExpandCommand() {
	words, err := settings.ExpandCommand([]string{"codex", "exec", "{prompt}"}, settings.Values{"prompt": "fix {branch}; rm -rf /"})
	fmt.Printf("%q %v\n", words, err)
	// Output: ["codex" "exec" "fix {branch}; rm -rf /"] <nil>
}
