package jsonrpc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/session/jsonrpc"
)

// connect returns a connection, the lines that it writes, and where the agent writes.
func connect(version string, h jsonrpc.Handler) (*jsonrpc.Conn, *bufio.Scanner, *io.PipeWriter) {
	lines, input := io.Pipe()
	output, agent := io.Pipe()
	c := jsonrpc.New(input, version)
	go func() { _ = c.Read(output, 0, h) }()
	return c, bufio.NewScanner(lines), agent
}

// Results are read by the goroutine that reads the connection, before what follows
// them, and IDs may come back as another form of the same number.
func TestCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order []string
		c, lines, agent := connect("2.0", jsonrpc.Handler{
			Notification: func(m *jsonrpc.Message, _ []byte) { order = append(order, m.Method) },
		})
		defer agent.Close()
		go func() {
			lines.Scan()
			if got, want := lines.Text(), `{"jsonrpc":"2.0","id":1,"method":"sum","params":[1,2]}`; got != want {
				t.Errorf("it writes %s, want %s", got, want)
			}
			fmt.Fprintln(agent, `{"method":"before"}`)
			fmt.Fprintln(agent, `{"id":1.0,"result":3}`)
			fmt.Fprintln(agent, `{"method":"after"}`)
		}()
		got, err := jsonrpc.Call(t.Context(), c, "sum", []int{1, 2}, func(int) { order = append(order, "result") })
		synctest.Wait()
		if want := "[before result after]"; err != nil || got != 3 || fmt.Sprint(order) != want {
			t.Errorf("%d, %v, in the order %v, want %s", got, err, order, want)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for answer, check := range map[string]func(error) bool{
		`{"id":1,"error":{"code":-32601,"message":"unknown"}}`: func(err error) bool {
			refused, ok := errors.AsType[*jsonrpc.Error](err)
			return ok && refused.Code == jsonrpc.CodeMethodNotFound && err.Error() == "unknown (-32601)"
		},
		`{"id":1,"error":"boom"}`: func(err error) bool { _, ok := errors.AsType[*jsonrpc.Error](err); return ok },
		`{"id":1,"more":"`:        func(err error) bool { return errors.Is(err, jsonrpc.ErrUnreadable) },
		`{"id":1,"result":"x"}`:   func(err error) bool { return err != nil },
		"":                        func(err error) bool { return errors.Is(err, jsonrpc.ErrClosed) },
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, lines, agent := connect("", jsonrpc.Handler{Unknown: func([]byte, bool, int64) {}})
				go func() {
					lines.Scan()
					fmt.Fprintln(agent, answer)
					agent.Close()
				}()
				if _, err := jsonrpc.Call[int](t.Context(), c, "sum", nil, nil); !check(err) {
					t.Errorf("%s: %v", answer, err)
				}
				synctest.Wait()
				if _, err := jsonrpc.Call[int](t.Context(), c, "sum", nil, nil); !errors.Is(err, jsonrpc.ErrClosed) {
					t.Errorf("after the end: %v", err)
				}
			})
		})
	}
}

// A request that is given up before it is written is never answered; one that is on its
// way is.
func TestRequestsThatAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, lines, agent := connect("", jsonrpc.Handler{})
		defer agent.Close()
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan *jsonrpc.Message, 2)
		go func() {
			synctest.Wait()
			cancel()
		}()
		_, begun, err := c.Start(ctx, "slow", nil, func(m *jsonrpc.Message) { answers <- m })
		if !begun || !errors.Is(err, context.Canceled) {
			t.Errorf("begun %v, %v", begun, err)
		}
		if _, begun, err := c.Start(ctx, "never", nil, func(m *jsonrpc.Message) { answers <- m }); begun || !errors.Is(err, context.Canceled) {
			t.Errorf("begun %v, %v", begun, err)
		}
		lines.Scan()
		fmt.Fprintln(agent, `{"id":1,"result":"late"}`)
		fmt.Fprintln(agent, `{"id":2,"result":"unknown"}`)
		synctest.Wait()
		var got string
		if err := (<-answers).Decode(&got); err != nil || got != "late" || len(answers) > 0 {
			t.Errorf("%q, %v, and %d more", got, err, len(answers))
		}
	})
}
