//go:build linux || darwin

// Command stub is the smallest agent: it reads its prompt, answers and exits.
// With the argument talk it answers messages of sessions, in any protocol, until the end
// of the input. With others it answers as the Codex CLI does. Variables make it print much:
//
//	BENCH_STREAM=FILE  print the bytes of FILE, from memory, in large pieces
//	BENCH_GATE=FILE    with it: after the line at half of them wait until FILE is unlocked
//	BENCH_HOLD=1       answer with the time, leave a child that holds standard output
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

const codex = `{"type":"thread.started","thread_id":"01a1fb6c-c589-76b2-9a6b-d8f76317e17e"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":1010,"cached_input_tokens":100,"output_tokens":50,"reasoning_output_tokens":7}}
`

// pieceSize is how much is written at once.
const pieceSize = 256 << 10

// holdFor is longer than any run: a child that is still there was not ended.
const holdFor = time.Minute

func main() {
	if os.Getenv("BENCH_SLEEP") != "" {
		time.Sleep(holdFor)
		return
	}
	do := answer
	if len(os.Args) == 2 && os.Args[1] == "talk" {
		do = talk
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "stub:", err)
		os.Exit(1)
	}
}

func answer() error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	switch {
	case os.Getenv("BENCH_STREAM") != "":
		return stream(os.Getenv("BENCH_STREAM"), os.Getenv("BENCH_GATE"))
	case os.Getenv("BENCH_HOLD") != "":
		if err := hold(); err != nil {
			return err
		}
		_, err := os.Stdout.WriteString("text:" + strconv.FormatInt(time.Now().UnixNano(), 10) + "\nok:\n")
		return err
	case len(os.Args) > 1:
		_, err := os.Stdout.WriteString(codex)
		return err
	}
	_, err := os.Stdout.WriteString("text:done\nok:\n")
	return err
}

func stream(file, gate string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	if gate != "" {
		half := len(data) / 2
		half += bytes.IndexByte(data[half:], '\n') + 1
		if err := write(data[:half]); err != nil {
			return err
		}
		if err := wait(gate); err != nil {
			return err
		}
		data = data[half:]
	}
	return write(data)
}

func write(data []byte) error {
	for len(data) > 0 {
		n, err := os.Stdout.Write(data[:min(len(data), pieceSize)])
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// wait returns when no process holds an exclusive lock on the file.
func wait(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != syscall.EINTR {
			return err
		}
	}
}

// hold leaves a child behind, in a new session.
func hold() error {
	_, err := os.StartProcess("/proc/self/exe", []string{"stub"}, &os.ProcAttr{
		Env: append(os.Environ(), "BENCH_SLEEP=1"), Files: []*os.File{nil, os.Stdout, nil}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	return err
}
