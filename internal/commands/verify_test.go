package commands_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/commands"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/verify"
)

// runVerify runs verify with three runtimes, of which alpha is installed and alpha and beta
// have a target. The CLI of alpha fails at once.
func runVerify(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	fails, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(fails, filepath.Join(bin, "alpha")); err != nil {
		t.Fatal(err)
	}
	var r registry.Registry
	for _, id := range []string{"alpha", "beta", "gamma"} {
		rt := plain(id)
		rt.PromptLimit.Bytes = 1000
		if err := r.Register(rt); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code = commands.Main(t.Context(), &commands.Env{
		Args: append([]string{"verify"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Environ: []string{"PATH=" + bin}, Dir: t.TempDir(), Registry: &r,
		Targets: func() []verify.Target {
			return []verify.Target{
				{Runtime: "alpha", Known: map[string]string{"prompt-dash": "it fails at once"}},
				{Runtime: "beta"}, {Runtime: "unregistered"},
			}
		},
	})
	return code, out.String(), errs.String()
}

func TestVerifyShowsEveryStatus(t *testing.T) {
	t.Parallel()
	code, out, errs := runVerify(t, "--check", "prompt-dash", "--check", "prompt-limit", "--check", "http-400", "--check", "model")
	if code != 1 || !strings.Contains(errs, "alpha breaks 1 of the promises: http-400") {
		t.Errorf("exit code %d, standard error %q", code, errs)
	}
	for _, part := range []string{
		"known        alpha prompt-dash: ", "it fails at once", "kept         alpha prompt-limit: ",
		"broken       alpha http-400: ", "unsupported  alpha model: ",
		"alpha of unknown version: 1 kept, 1 broken, 1 known failures, 1 unsupported\n",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	if code, _, errs := runVerify(t, "alpha", "--check", "prompt-dash", "--check", "prompt-limit"); code != 0 || errs != "" {
		t.Errorf("without a broken promise: exit code %d, %q", code, errs)
	}
}

func TestVerifyPrintsJSON(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "verify.json")
	code, out, _ := runVerify(t, "alpha", "--check", "http-400", "--format", "json", "--output", file)
	data, err := os.ReadFile(file)
	if code != 1 || out != "" || err != nil {
		t.Fatalf("exit code %d, %q, %v", code, out, err)
	}
	var report struct {
		Date     string
		Runtimes []struct {
			Runtime string
			Results []struct{ Check, Promise, Status, Detail string }
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Runtimes) != 1 || len(report.Runtimes[0].Results) != 1 || report.Date == "" {
		t.Fatalf("report %s", data)
	}
	if r := report.Runtimes[0].Results[0]; r.Check != "http-400" || r.Status != "broken" || r.Promise == "" || r.Detail == "" {
		t.Errorf("result %+v", r)
	}
}

func TestVerifyPrintsJUnit(t *testing.T) {
	t.Parallel()
	code, out, _ := runVerify(t, "alpha", "--check", "http-400", "--check", "prompt-dash", "--check", "prompt-limit", "--junit")
	var doc struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
			Cases    []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(out), &doc); err != nil || code != 1 || len(doc.Suites) != 1 {
		t.Fatalf("exit code %d, %v\n%s", code, err, out)
	}
	if s := doc.Suites[0]; s.Tests != 3 || s.Failures != 1 || s.Skipped != 1 || len(s.Cases) != 3 {
		t.Errorf("suite %+v", s)
	}
	for _, c := range doc.Suites[0].Cases {
		if (c.Failure != nil) != (c.Name == "http-400") {
			t.Errorf("case %+v", c)
		}
	}
}

func TestVerifyRefusesBeforeItStarts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"delta", 2, "delta"},
		{"gamma", 2, "gamma cannot be verified; only alpha, beta can"},
		{"alpha --check nothing", 2, "nothing"},
		{"alpha --junit --format json", 2, "exclude each other"},
		{"alpha --list", 2, "--list"},
		{"beta", 1, "no beta in PATH"},
	} {
		code, out, errs := runVerify(t, strings.Fields(tt.args)...)
		if code != tt.code || out != "" || !strings.Contains(errs, tt.says) {
			t.Errorf("%s: exit code %d, %q, %q", tt.args, code, out, errs)
		}
	}
}

func TestVerifyListsItsChecks(t *testing.T) {
	t.Parallel()
	code, out, _ := runVerify(t, "--list")
	for _, c := range verify.Checks() {
		if !strings.Contains(out, c.Name) || !strings.Contains(out, c.Promise) {
			t.Errorf("%s is not listed", c.Name)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}
