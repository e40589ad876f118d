package session

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A callback of the session that panics leaves the terminal as it was. It can be called
// before the terminal is raw.
func TestPanicRestoresTheTerminal(t *testing.T) {
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no pseudo-terminals: %v", err)
	}
	defer pty.Close()
	number, err := unix.IoctlGetInt(int(pty.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(pty.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	mode := func() unix.Termios {
		m, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return *m
	}
	before := mode()
	for _, begun := range []bool{true, false} {
		var terminal rawTerminal
		if begun {
			if err := terminal.begin(tty); err != nil {
				t.Fatal(err)
			}
			if mode() == before {
				t.Error("the terminal is not raw")
			}
		}
		func() {
			defer func() {
				if reason := recover(); reason != "the reason" {
					t.Errorf("the panic is of %v", reason)
				}
			}()
			defer terminal.restoreInPanic()
			panic("the reason")
		}()
		if mode() != before {
			t.Error("the terminal is left raw")
		}
	}
}
