// Command parrot is the agent: it repeats its prompt.
package main

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"io"
	"os"
)

func main() {
	flag.Bool("json", false, "print lines of JSON; the only format there is")
	model := flag.String("model", "grey", "which parrot")
	flag.Parse()
	prompt, err := io.ReadAll(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	out.Encode(map[string]string{"parrot": "hello", "session": rand.Text(), "model": *model})
	out.Encode(map[string]string{"parrot": "says", "text": string(prompt)})
	out.Encode(map[string]any{"parrot": "done", "failed": err != nil})
}
