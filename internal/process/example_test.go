package process_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/process"
)

func ExampleRun() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cat, err := process.LookPath("cat", os.Getenv("PATH"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out strings.Builder
	exit, err := process.Run(ctx, process.Spec{
		Path:   cat,
		Env:    os.Environ(),
		Dir:    os.TempDir(),
		Stdin:  "a prompt of any length",
		Stdout: &out,
		Stderr: os.Stderr,
	})
	fmt.Println(out.String(), exit.Code, exit.Stopped, err)
	// Output: a prompt of any length 0 false <nil>
}

func ExampleStart() {
	sleep, err := process.LookPath("sleep", os.Getenv("PATH"))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := process.Start(context.Background(), process.Spec{Path: sleep, Args: []string{"60"}, Dir: os.TempDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Stop()
	exit, err := p.Wait()
	fmt.Println(exit.Signal, exit.Stopped, err)
	// Output: SIGTERM true <nil>
}
