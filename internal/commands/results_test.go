package commands_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// A file of results is written through no link: an agent can have put it there.
func TestResultsFollowNoLink(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"--output":     {"-o", "{link}", "detect"},
		"export":       {"runs", "export", "--to", "{link}", "--force", "--runs-root", "{root}", "--since", "1d"},
		"report":       {"runs", "report", "--to", "{link}", "--force", "--runs-root", "{root}"},
		"export again": {"runs", "export", "--to", "{link}", "--runs-root", "{root}", "--since", "1d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			foreign, link := filepath.Join(dir, "foreign"), filepath.Join(dir, "link")
			if err := os.WriteFile(foreign, []byte("foreign"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(foreign, link); err != nil {
				t.Fatal(err)
			}
			// A record, so that the commands have something to write.
			recording, err := (&runs.Records{Root: filepath.Join(dir, "runs")}).Record(t.Context(), agent.Recordable{
				Start: agent.Start{Runtime: "one", Path: "/bin/one", Workdir: "/"}, Request: agent.Request{Prompt: "x"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := recording.End(t.Context(), agent.Result{Text: "answer"}, nil); err != nil {
				t.Fatal(err)
			}
			replace := strings.NewReplacer("{link}", link, "{root}", filepath.Join(dir, "runs"))
			for i := range args {
				args[i] = replace.Replace(args[i])
			}
			code, out, errs := call(t, args...)
			if text, err := os.ReadFile(foreign); err != nil || string(text) != "foreign" {
				t.Errorf("the link's target is %.40q, %v", text, err)
			}
			if name == "--output" && (code != 2 || !strings.Contains(errs, "it is a symbolic link; name the file it leads to")) {
				t.Errorf("%d, %q, %q", code, out, errs)
			}
			info, err := os.Lstat(link)
			if err != nil {
				t.Fatal(err)
			}
			if forced := name == "export" || name == "report"; forced != (code == 0 && info.Mode().IsRegular()) {
				t.Errorf("%s: %d, %q, %v", name, code, errs, info.Mode())
			}
		})
	}
}

// A file of results that is open already gets them at its end.
func TestResultsIntoAnOpenFile(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("before\n"); err != nil {
		t.Fatal(err)
	}
	code, _, errs := call(t, "-o", fmt.Sprintf("/dev/fd/%d", f.Fd()), "detect")
	if text, err := os.ReadFile(f.Name()); code != 0 || string(text) != "before\nalpha\n" || err != nil {
		t.Errorf("%d, %q, %q, %v", code, errs, text, err)
	}
}

// A file of results that cannot be written is a usage error before anything starts.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"link":       "it is a symbolic link; name the file it leads to",
		"":           "it is a directory; name a file",
		"none/file":  "its directory: no such file or directory",
		"file/below": "its directory: not a directory",
	} {
		// The prompt would be an error too if it was checked.
		code, out, errs := call(t, "-o", dir+"/"+name, "run", "--agent", "none-such", "--prompt", dir+"/missing")
		if code != 2 || out != "" || !strings.HasPrefix(errs, "bus-agent: --output "+dir+"/"+name+": "+want) {
			t.Errorf("%s: %d, %q, %q", name, code, out, errs)
		}
		if code, _, errs := call(t, "-q", "-o", dir+"/"+name, "detect"); code != 0 && strings.Contains(errs, "--output") {
			t.Errorf("%s, quiet: %d, %q", name, code, errs)
		}
	}
}
