package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/internal/testwait"
)

// called is how the program was called; testscript shortens os.Args[0].
var called = os.Args[0]

// fakeAgent plays the file NAME.play next to the executable, a line at a time:
//
//	out TEXT      print TEXT on standard output
//	err TEXT      print TEXT on standard error
//	cat FILE      print a file, relative to the one that is played
//	show FILE     print a file
//	next FILE     print FILE-1, in the next run FILE-2 and so on
//	repeat N TEXT print TEXT N times
//	stdin FILE    keep standard input
//	args FILE     keep the arguments, one a line
//	env FILE      keep the environment, one variable a line
//	touch FILE    make FILE
//	wait FILE     wait until FILE exists
//	pause TIME    do nothing for TIME
//	hang          do nothing until a signal comes
//	stubborn      ignore SIGTERM from now on
//	sh SCRIPT     run a shell script next to this one
//	converse      answer messages as (*conversation).answer says
//	marked        wait until this process is marked as one of a run
//	fill N        make N files in the home that bus-agent gives it
//	exit CODE     end
//
// FILE is relative to the current directory where it is not absolute, and
// $NAME in it is a variable.
func fakeAgent() {
	text, err := os.ReadFile(called + ".play")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		if err := playLine(word, rest); err != nil {
			fmt.Fprintln(os.Stderr, "fake agent:", err)
			os.Exit(98)
		}
	}
}

func playLine(word, rest string) error {
	switch word {
	case "":
		return nil
	case "out":
		_, err := fmt.Println(rest)
		return err
	case "err":
		fmt.Fprintln(os.Stderr, rest)
		return nil
	case "cat":
		play, err := filepath.EvalSymlinks(called + ".play")
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(play), rest))
		if err == nil {
			_, err = os.Stdout.Write(text)
		}
		return err
	case "show":
		text, err := os.ReadFile(rest)
		if err == nil {
			_, err = os.Stdout.Write(text)
		}
		return err
	case "next":
		return showNext(rest)
	case "repeat":
		count, text, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(count)
		for ; err == nil && n > 0; n-- {
			_, err = fmt.Println(text)
		}
		return err
	case "stdin":
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		return keep(rest, string(text))
	case "args":
		return keep(rest, strings.Join(os.Args[1:], "\n")+"\n")
	case "env":
		return keep(rest, strings.Join(os.Environ(), "\n")+"\n")
	case "touch":
		return keep(rest, "")
	case "wait":
		if name := os.ExpandEnv(rest); !testwait.Exists(name) {
			return fmt.Errorf("%s does not appear", name)
		}
		return nil
	case "sh":
		return exec.Command("/bin/sh", "-c", rest).Start()
	case "converse":
		return converse(os.Stdin, os.Stdout)
	case "marked":
		awaitMark()
		return nil
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		return nil
	case "pause":
		d, err := time.ParseDuration(rest)
		time.Sleep(d)
		return err
	case "hang":
		hang()
		return nil
	case "fill":
		return fillHome(rest)
	case "exit":
		code, err := strconv.Atoi(rest)
		if err != nil {
			return err
		}
		os.Exit(code)
	}
	return fmt.Errorf("unknown line %q", word)
}

// showNext prints the first file of a row that was not printed yet.
func showNext(row string) error {
	for n := 1; ; n++ {
		name := row + "-" + strconv.Itoa(n)
		if _, err := os.Stat(name + ".done"); err == nil {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(text); err != nil {
			return err
		}
		return keep(name+".done", "")
	}
}

// keep writes a file in one step, so that a waiting reader sees it whole.
func keep(name, text string) error {
	name = os.ExpandEnv(name)
	// A recorded agent is also asked for its version, at the same time.
	part := fmt.Sprintf("%s.%d.part", name, os.Getpid())
	if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(part, name)
}

// hang waits until the test is over and its folder is gone, for at most an hour.
func hang() {
	for range 30 {
		if testwait.Poll(func() bool { _, err := os.Stat(called + ".play"); return err != nil }) {
			return
		}
	}
}

// awaitMark waits for the mark that a run puts on its agent on Linux. An agent
// that starts at the usual speed never runs before it.
func awaitMark() {
	const locks = 10 // RLIMIT_LOCKS
	limit := syscall.Rlimit{Cur: ^uint64(0)}
	testwait.Poll(func() bool {
		return runtime.GOOS != "linux" || syscall.Getrlimit(locks, &limit) != nil || limit.Cur != ^uint64(0)
	})
}

// fillHome makes files in the home that an agent was given.
func fillHome(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	for _, entry := range os.Environ() {
		if dir, ok := strings.CutPrefix(entry, "CODEX_HOME="); ok {
			dir = filepath.Join(dir, "filled")
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			for i := range n {
				if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return fmt.Errorf("it was given no home")
}
