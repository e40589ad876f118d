//go:build acceptance && linux

package tmux

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// print has the agent write raw bytes to its terminal.
func (r *real) print(raw string) string {
	r.t.Helper()
	result, err := r.say("print " + strconv.Quote(raw))
	if err != nil {
		r.t.Error(err)
	}
	return result.Text
}

// What an agent writes to its terminal reaches neither the clipboard nor the terminal
// of a person who attaches, and tmux runs nothing of it.
func TestHostileEscapeSequences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openReal(t, options(stub{}), dir)
	touch := "#(touch " + filepath.Join(dir, "pwned") + ")#{pane_id}#[fg=red]"
	inner := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte("evil")) + "\a"
	for _, raw := range []string{
		inner,                                            // clipboard
		"\x1bPtmux;\x1b" + inner + "\x1b\\",              // passed through
		"\x1b]2;" + touch + "\a",                         // title
		"\x1b]0;" + touch + "\a",                         // title and icon
		"\x1bk" + touch + "\x1b\\",                       // window name
		"\x1b]7;file:///" + touch + "\a",                 // working directory
		"\x1b]133;A\a\x1b]8;;file:///etc\aX\x1b]8;;\a",   // marks and links
		"\x1b[8;5;5t\x1b[3;0;0t\x1b[21t\x1b[18t\x1b[14t", // window size and reports
		touch,
	} {
		r.print(raw)
	}
	r.expect("one", "got "+fingerprint("one"))
	for _, c := range []struct{ format, want string }{
		{"#{buffer_sample}", ""},
		{"#{window_name}", r.tmux("display-message", "-p", "#{pane_current_command}")},
		{"#{window_width} #{window_height}", "200 50"},
		{"#{allow-passthrough} #{set-clipboard} #{allow-rename} #{set-titles} #{status}", "0 off 0 0 off"},
	} {
		if got := r.tmux("display-message", "-p", c.format); got != c.want {
			t.Errorf("%s: %q, want %q", c.format, got, c.want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("something ran: %v, %v", entries, err)
	}
}

// No file of configuration is read, so none can run a program.
func TestHostileConfigurationOfTmuxIsNotRead(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	conf := "run-shell 'touch " + filepath.Join(dir, "pwned") + "'\nset -g status on\nset -g default-shell /bin/false\n"
	for _, name := range []string{".tmux.conf", ".config/tmux/tmux.conf"} {
		path := filepath.Join(home, name)
		must(os.MkdirAll(filepath.Dir(path), 0o700))
		must(os.WriteFile(path, []byte(conf), 0o600))
		must(os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(conf), 0o600))
	}
	must(os.WriteFile(filepath.Join(dir, ".tmux.conf"), []byte(conf), 0o600))
	o := options(stub{})
	o.Env = append(o.Env, "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "TMUX_CONF="+filepath.Join(dir, ".tmux.conf"))
	r := openReal(t, o, dir)
	r.expect("one", "got "+fingerprint("one"))
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("it ran")
	}
	if got := r.tmux("display-message", "-p", "#{status}"); got != "off" {
		t.Errorf("status %s", got)
	}
}

// A message cannot end the paste that it is in.
func TestHostileMessageEndsThePaste(t *testing.T) {
	t.Parallel()
	r := openReal(t, options(stub{}), t.TempDir())
	for _, end := range []string{"\x1b[201~", "\u009b201~", "\x9b201~"} {
		text := "a" + end + "\r\nexit 3\r\n"
		if result, err := r.say(text); err != nil || !strings.Contains(result.Text, "got "+fingerprint(sanitize(text))) {
			t.Errorf("%q: %q, %v", text, result.Text, err)
		}
	}
}

// The start of a request that is longer than the screen is reported.
func TestHostileRequestLongerThanTheScreen(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{5, 30, 120, 2000} {
		t.Run(strconv.Itoa(lines), func(t *testing.T) {
			t.Parallel()
			o := options(stub{})
			o.Terminal.Approvals = asking.Approvals
			r := openReal(t, o, t.TempDir())
			r.print(strings.Repeat("before\r\n", 70))
			turn := r.Send(session.Message{Text: "ask " + strconv.Itoa(lines)})
			testwait.Until(t, "a request", func() (int, bool) { n := len(r.Approvals()); return n, n == 1 })
			a := r.Approvals()[0]
			if !strings.Contains(a.Reason, "delete everything") || !strings.HasSuffix(a.Reason, "Allow this?") {
				t.Errorf("%d bytes: %q", len(a.Reason), a.Reason)
			}
			if err := r.Answer(t.Context(), a.ID, engine.Decline); err != nil {
				t.Error(err)
			}
			if result, err := r.wait(turn); err != nil || !strings.Contains(result.Text, `pressed "\x1b"`) {
				t.Errorf("%.200q, %v", result.Text, err)
			}
		})
	}
}

// An agent that imitates its ready screen, or a request that it no longer asks, can
// end its turn early, but every message still arrives whole.
func TestHostileImitationOfAReadyScreen(t *testing.T) {
	t.Parallel()
	o := options(stub{})
	o.Terminal.Approvals = asking.Approvals
	r := openReal(t, o, t.TempDir())
	if text := r.print("❯ \r\nAllow\u00a0this?\r\n❯ \r\n"); !strings.Contains(text, "Allow") || len(r.Approvals()) > 0 {
		t.Errorf("%q, %+v", text, r.Approvals())
	}
	r.expect("one", "got "+fingerprint("one"))
	r.expect("two", "got "+fingerprint("two"))
}
