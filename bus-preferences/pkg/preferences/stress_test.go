package preferences

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	crowdProcesses  = 10
	crowdGoroutines = 10 // in each process
	crowdHere       = 100
)

// crowd writes from several goroutines once its standard input is closed.
func crowd() {
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin)
	var wait sync.WaitGroup
	for g := range crowdGoroutines {
		wait.Go(func() {
			if err := persist(func() error {
				return SetString(context.Background(), fmt.Sprintf("p%d.g%d", os.Getpid(), g), "x")
			}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		})
	}
	wait.Wait()
}

// persist writes again when the lock was not free for long: two hundred writers of a
// busy machine take longer than a single one waits.
func persist(write func() error) error {
	for {
		if err := write(); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// The writers are goroutines of several processes, and each sets a different key.
func TestTwoHundredConcurrentWriters(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	start := make(chan struct{})
	var arrived, wait sync.WaitGroup
	for range crowdProcesses {
		cmd := child(t, s, "crowd")
		stdin, err := cmd.StdinPipe()
		check(t, err)
		stdout, err := cmd.StdoutPipe()
		check(t, err)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		check(t, cmd.Start())
		arrived.Add(1)
		wait.Go(func() {
			_, _ = stdout.Read(make([]byte, 6))
			arrived.Done()
			<-start
			stdin.Close()
			_, _ = io.Copy(io.Discard, stdout)
			if err := cmd.Wait(); err != nil {
				t.Errorf("child process: %v: %s", err, stderr.String())
			}
		})
	}
	arrived.Wait()
	for g := range crowdHere {
		wait.Go(func() {
			<-start
			if err := persist(func() error { return s.setString(t.Context(), fmt.Sprintf("here.g%d", g), "x") }); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wait.Wait()
	items, err := s.list(t.Context(), "")
	if want := crowdProcesses*crowdGoroutines + crowdHere; err != nil || len(items) != want {
		t.Errorf("%d preferences, want %d; %v", len(items), want, err)
	}
	if got := files(t, filepath.Dir(s.path)); got != "preferences.json preferences.json.lock" {
		t.Errorf("files = %s", got)
	}
}

// count sets one key to 1, 2, 3 …, each followed by a long text, until it is killed.
// It prints each number before and after writing it.
func count() {
	for i := 1; ; i++ {
		fmt.Println(i)
		if err := SetString(context.Background(), "number", numbered(i)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

func numbered(i int) string {
	return strconv.Itoa(i) + strings.Repeat(" "+strconv.Itoa(i), 5000)
}

// A writer killed at any time leaves the old or the new value, releases the lock and
// leaves at most one temporary file.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	for round := range killRounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			check(t, s.setString(t.Context(), "other", "kept"))
			for range 2 {
				killedWriter(t, s)
			}
			if got := files(t, filepath.Dir(s.path)); strings.Count(got, " ") > 2 {
				t.Errorf("files = %s", got)
			}
			check(t, s.setString(t.Context(), "number", "done"))
			if got := files(t, filepath.Dir(s.path)); got != "preferences.json preferences.json.lock" {
				t.Errorf("after the next write, files = %s", got)
			}
		})
	}
}

func killedWriter(t *testing.T, s store) {
	t.Helper()
	cmd := child(t, s, "count")
	stdout, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatal("the writer exited")
	}
	// A write takes some milliseconds, so this may hit any part of one.
	time.AfterFunc(rand.N(12*time.Millisecond), func() { _ = cmd.Process.Kill() })
	printed := []string{lines.Text()}
	for lines.Scan() {
		printed = append(printed, lines.Text())
	}
	_ = cmd.Wait()
	last, err := strconv.Atoi(printed[len(printed)-1])
	check(t, err)

	value, ok, err := s.getString(t.Context(), "number")
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.SplitN(value+" ", " ", 2)[0])
	if err != nil && ok {
		t.Fatalf("partial value: %.40q", value)
	}
	switch {
	case ok && value != numbered(number):
		t.Fatalf("the value of %d is partial: %.40q", number, value)
	case len(printed)%2 == 1 && last == 1:
		// The first write of this process may be incomplete. The value, if any, is
		// from the process before.
	case len(printed)%2 == 1 && number != last && number != last-1:
		t.Fatalf("the value is %d, while %d was written", number, last)
	case len(printed)%2 == 0 && number != last && number != last+1:
		t.Fatalf("the value is %d, after %d was written", number, last)
	}
	if other, _, err := s.getString(t.Context(), "other"); other != "kept" || err != nil {
		t.Fatalf("another key is %q, %v", other, err)
	}
}

// wantWriteError checks that writing fails with cause, names the file and changes
// nothing.
func wantWriteError(s store, cause error) error {
	ctx := context.Background()
	before, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	for name, write := range map[string]func() error{
		"set":   func() error { return s.setString(ctx, "a", strings.Repeat("new", 1<<16)) },
		"other": func() error { return s.setString(ctx, "b", strings.Repeat("new", 1<<16)) },
	} {
		err := write()
		if !errors.Is(err, cause) || !strings.HasPrefix(err.Error(), s.path+" was not written: ") {
			return fmt.Errorf("%s: %v, want %v and the name of the file", name, err, cause)
		}
	}
	after, err := os.ReadFile(s.path)
	if err != nil || string(after) != string(before) {
		return fmt.Errorf("the file had %d bytes and has %d, %v", len(before), len(after), err)
	}
	if value, _, err := s.getString(ctx, "a"); value != "old" || err != nil {
		return fmt.Errorf("the value is %.20q, %v", value, err)
	}
	if _, err := os.Lstat(tempName(s.path)); err == nil {
		return errors.New("a temporary file remains")
	}
	return nil
}
