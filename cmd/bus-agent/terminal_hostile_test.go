//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/jsonline"
)

// drives is what a terminal acts on: C0, DEL, C1 as UTF-8 and as invalid
// UTF-8, and what reorders text. A colour and the sequences of our spinner are among
// them, which pass only where they are ours.
const drives = "<\x1b[2J\x1b]0;title\x07\x1b[31m\x1b[K\x1b[?7l\r\b\x0b\x7f\u0085\u009b31m\u009d0;t\u009c\u202e\u2066\x9b31m\x9d\xc2>"

// textual is drives as text, which JSON can hold.
var textual = strings.ToValidUTF8(drives, "")

// inRawJSON is a text in JSON that escapes no more than it has to.
func inRawJSON(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can always be written
	return strings.Trim(b.String(), "\"\n")
}

// drivesTerminal returns the first part of what a terminal was sent that it acts
// on, beyond our own styling; empty for none.
func drivesTerminal(shown string, styles ...string) string {
	shown = strings.ReplaceAll(shown, "\r\n", "\n")
	for _, style := range append(styles, "\x1b[31mbus-agent:\x1b[0m ", "\x1b[33mbus-agent:\x1b[0m ", "\x1b[36mbus-agent:\x1b[0m ", "\r\x1b[?7l", "\x1b[K\x1b[?7h", "\r\x1b[K") {
		shown = strings.ReplaceAll(shown, style, "")
	}
	for i := 0; i < len(shown); {
		r, n := utf8.DecodeRuneInString(shown[i:])
		if jsonline.IsControl(r) || r == utf8.RuneError && n == 1 && shown[i] < 0xa0 {
			return shown[max(0, i-60):min(len(shown), i+20)]
		}
		i += n
	}
	return ""
}

// inTerminal runs a call in a terminal and returns what that is sent.
func (s *sandbox) inTerminal(cmd *exec.Cmd) string {
	s.t.Helper()
	term := openTerminal(s.t)
	tty, err := os.OpenFile(term.tty.Name(), os.O_WRONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.ReplaceAll("\n"+hostilePlay(), "\nout ", "\n")), tty, tty
	shown := term.screen()
	inProcess(cmd)
	tty.Close()
	return <-shown
}

// hostilePlay is an agent that puts what drives a terminal into every field.
func hostilePlay() string {
	x := inRawJSON(textual)
	escaped := strings.NewReplacer("\u009b", `\u009b`, "\u202e", `\u202e`, "\x7f", `\u007f`).Replace(x)
	return `out {"type":"thread.started","thread_id":"t` + x + `"}` + "\n" +
		`out {"type":"item.completed","item":{"id":"` + x + `","type":"reasoning","text":"` + escaped + `"}}` + "\n" +
		`out {"type":"item.started","item":{"id":"c","type":"command_execution","command":"ls ` + x + `","aggregated_output":"","status":"in_progress"}}` + "\n" +
		`out {"type":"item.completed","item":{"id":"c","type":"command_execution","command":"ls ` + x + `","aggregated_output":"` + x + `","exit_code":1,"status":"failed"}}` + "\n" +
		`out {"type":"item.completed","item":{"id":"f","type":"file_change","changes":[{"path":"` + x + `","kind":"` + x + `"}],"status":"completed"}}` + "\n" +
		`out {"type":"item.completed","item":{"id":"m","type":"mcp_tool_call","server":"` + x + `","tool":"` + x + `","arguments":{"` + x + `":"` + escaped + `"},"result":{"content":[{"type":"text","text":"` + x + `"}]},"status":"completed"}}` + "\n" +
		`out {"type":"item.completed","item":{"id":"p","type":"todo_list","items":[{"text":"` + x + `","completed":false}]}}` + "\n" +
		`out {"type":"item.completed","item":{"id":"w","type":"web_search","query":"` + x + `"}}` + "\n" +
		`out {"type":"` + x + `","message":"` + x + `"}` + "\n" +
		`out {"type":"error","message":"Reconnecting... 1/5 (` + x + `)"}` + "\n" +
		"out " + strings.NewReplacer("\n", "").Replace(drives) + "\n" +
		"err " + drives + "\n" +
		`out {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"` + x + `"}}` + "\n"
}

// No command in any format sends a terminal what it acts on, whatever an agent,
// a repository or a stored preference holds.
func TestHostileTextDrivesNoTerminal(t *testing.T) {
	t.Parallel()
	file := strings.NewReplacer("/", "", "\x00", "").Replace(drives)
	run := []string{"run", "--agent", "codex", "--record", "--text", "x" + textual}
	with := func(base []string, more ...string) []string { return append(append([]string{}, base...), more...) }
	commands := [][]string{
		run, with(run, "-v"), with(run, "-vv"), with(run, "--format", "json"), with(run, "--color", "always"),
		with(run, "--output-format", "ndjson"), with(run, "--output-format", "events"),
		with(run, "--dry-run"), with(run, "--dry-run", "--format", "json"), with(run, "--add-dir", file), with(run, "--add-dir", file, "--dry-run"),
		with(run, "--output", "/dev/tty", "--output-format", "ndjson"), with(run, "--model", drives), with(run, "--env", "A"+drives+"=b", "--dry-run"),
		{"runs", "list"}, {"runs", "list", "--format", "json"}, {"runs", "show", "latest"}, {"runs", "show", "latest", "--format", "json"},
		{"runs", "tail", "latest"}, {"runs", "output", "latest"}, {"runs", "events", "latest"}, {"runs", "events", "latest", "--text"}, {"runs", "report", "--to", "-"},
		{"runs", "show", drives}, {"runs", "prune", "--dry-run", "--keep", "0"}, {"runs", "export", "-o", file},
		{"detect", "-v"}, {"detect", "--format", "json"}, {"doctor"}, {"doctor", "-v"}, {"doctor", "--format", "json"}, {"doctor", drives},
		{"config", "show"}, {"config", "show", "--format", "json"}, {"runtime", "list"}, {"runtime", "list", "--format", "json"},
		{"instructions", "show"}, {"instructions", "show", "--format", "json"}, {"instructions", "clean"},
		{"format", "--runtime", "codex"}, {"format", "--runtime", "codex", "--output-format", "events"},
		{"render", "--text", "a {{X}}", "--var", "X=" + textual}, {"render", "--text", "{{" + drives + "}}"},
		{"session", "list"}, {"session", "list", "--format", "json"}, {"session", "show", drives}, {"session", "watch", drives},
		{"completion", "bash"}, {"__complete", "3", "bus-agent", "run", "--agent", ""}, {"__complete", "run", "--agent", ""}, {"__complete", "run", "--model", ""},
		{drives}, {"run", "--" + drives}, {"run", "--agent", drives, "--text", "x"}, {"run", "--prompt", drives}, {"-C", drives, "detect"}, {"set", "runtime", drives}, {"help", drives},
	}
	s := newSandbox(t, "codex", "")
	replace(t, s.path("bin/codex.play"), hostilePlay()+`out {"type":"turn.completed","usage":{}}`+"\n", 0o644)
	work := filepath.Join(s.path("work"), file)
	for _, dir := range []string{work, filepath.Join(work, ".git"), filepath.Join(work, file), filepath.Join(work, "AGENTS.md.d")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			testneed.Lacking(t, "the file system does not take the name: %v", err)
		}
	}
	replace(t, filepath.Join(work, ".git/HEAD"), "ref: refs/heads/"+drives+"\n", 0o644)
	replace(t, filepath.Join(work, "AGENTS.md"), drives+"\n", 0o644)
	x := inRawJSON(textual)
	shows := 0
	for _, preferences := range []string{`{}`, `{"bus-agent.model":"` + x + `","bus-agent.runtimes.mine":{"name":"Mine` + x + `","executables":["mine"],"install_url":"https://example.com/` + x + `","args":["` + x + `"]}}`} {
		replace(t, s.path("preferences.json"), `{"version":1,"values":`+preferences+`}`, 0o600)
		for _, args := range commands {
			shown := s.inTerminal(inDir(s.command(args...), work))
			if part := drivesTerminal(shown); part != "" {
				t.Errorf("%q sends a terminal %q", args, part)
			}
			if strings.Contains(shown, "title") || strings.Contains(shown, "<") {
				shows++
			}
		}
	}
	// The text around what was escaped or removed is shown, so the commands did
	// show it.
	if shows < len(commands) {
		t.Errorf("only %d of %d calls show the text", shows, 2*len(commands))
	}

	replace(t, s.path("preferences.json"), `{"version":1,"values":{}}`, 0o600)
	// Without a terminal the lines of an agent are passed on as they are.
	cmd := inDir(s.command(with(run, "--output-format", "ndjson")...), work)
	out, _ := cmd.Output()
	if !strings.Contains(string(out), drives[:20]) || !strings.Contains(string(out), "\u009b31m") {
		t.Errorf("the lines of the agent are not passed on as they are: %q", out)
	}
}

func inDir(cmd *exec.Cmd, dir string) *exec.Cmd {
	cmd.Dir = dir
	return cmd
}

// In a conversation neither does what an agent says and asks for.
func TestNothingDrivesATerminalInAChat(t *testing.T) {
	t.Parallel()
	p := startChat(t)
	p.sees("> ")
	p.types("hello \u009b31m\u202eabc\u0085 def\r")
	p.sees("you said hello")
	p.sees("> ")
	p.types("\x04")
	p.ends(0)
	shown := p.all.String()
	if i := strings.Index(shown, "you said"); i < 0 || strings.ContainsAny(shown[i:], "\u009b\u202e\u0085") {
		t.Errorf("the terminal was sent %q", shown)
	}
}
