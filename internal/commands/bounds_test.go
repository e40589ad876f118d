package commands_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/commands"
	"github.com/busdk/bus-agent/registry"
)

// An error quotes what was given, but not all of a long value.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for _, args := range [][]string{
		{"render", "--text", "a", "--var", long}, {"run", "--text", "a", "--agent", long},
		{"run", "--text", "a", "--access", long}, {"set", "model", long, long}, {"unset", long}, {long},
	} {
		code, _, errs := call(t, args...)
		if code != 2 || len(errs) > 2000 || !strings.Contains(errs, "bytes]") {
			t.Errorf("%.20q: exit code %d, %d bytes: %.200s", args, code, len(errs), errs)
		}
	}
}

// However many files of cooldowns are unreadable, doctor shows a few and a count.
func TestDoctorCountsUnreadableCooldowns(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, ".local", "state", "bus-agent", "resting")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("r%d.json", i)), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var r registry.Registry
	if err := r.Register(plain("alpha")); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	commands.Main(t.Context(), &commands.Env{
		Args: []string{"doctor", "alpha"}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errs,
		Environ: []string{"HOME=" + home, "PATH=" + home}, Dir: t.TempDir(), Registry: &r,
	})
	if n := strings.Count(errs.String(), "cooldown ignored: "); n != 11 || !strings.Contains(errs.String(), "cooldown ignored: 190 more\n") {
		t.Errorf("%d warnings: %.500s", n, errs.String())
	}
}
