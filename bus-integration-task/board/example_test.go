package board

import (
	"context"
	"fmt"
	"net/url"
)

func ExampleServe() {
	ctx, cancel := context.WithCancel(context.Background())
	err := Serve(ctx, Options{
		Log: newMemory(), // in a program, an adapter of the client of the events server
		Started: func(address string) {
			if u, err := url.Parse(address); err == nil {
				fmt.Println("the board is on", u.Hostname())
			}
			cancel()
		},
	})
	fmt.Println(err)
	// Output:
	// the board is on 127.0.0.1
	// <nil>
}
