//go:build linux

package main

import (
	"strings"
	"testing"
)

// A terminal shows no HTML: there the page is not printed.
func TestReportIsNotForTerminals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"terminal": {[]string{"runs", "report"}, "bus-agent: standard output is a terminal, which cannot show HTML; use --to FILE; see 'bus-agent runs report --help'\n"},
		"quiet":    {[]string{"-q", "runs", "report"}, ""},
		"file":     {[]string{"-o", "/dev/null", "runs", "report"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, agentName, "")
			term := openTerminal(t)
			cmd := s.command(test.args...)
			cmd.Env = append(cmd.Env, "NO_COLOR=1")
			cmd.Stdout, cmd.Stderr = term.tty, term.tty
			s.start(cmd)
			shown := <-term.screen()
			_ = cmd.Wait()
			if !strings.HasPrefix(shown, test.want) || test.want == "" && shown != "" {
				t.Errorf("the terminal shows %q", shown)
			}
		})
	}
}
