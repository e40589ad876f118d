package commands_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/internal/commands"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/verify"
)

// install returns a folder for PATH in which alpha is a link to a program, such as the test
// binary; see TestMain.
func install(t *testing.T, program string) string {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "alpha")); err != nil {
		t.Fatal(err)
	}
	return bin
}

// runVerify runs verify with three runtimes, of which alpha is installed and alpha and beta
// have a target. The CLI of alpha reports a version and fails at once otherwise.
func runVerify(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runVerifyOf(t, self(t), args...)
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func runVerifyOf(t *testing.T, alpha string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	bin := install(t, alpha)
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
		"alpha\n  ", "  known        prompt-dash     A prompt ", "  Known: it fails at once\n", "  kept         prompt-limit    A prompt ",
		"  broken       http-400        A refused ", "  unsupported  model           The requested ",
		"alpha 1.2.3: 1 kept, 1 broken, 1 known failure, 1 unsupported in ",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, " ") && len(line) > 80 {
			t.Errorf("a line has %d columns: %s", len(line), line)
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
	code, out, _ := runVerify(t, "alpha", "--check", "http-400", "--check", "prompt-dash", "--check", "prompt-limit", "--format", "junit")
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
		{"alpha --list", 2, "--list"},
		{"--list --format junit", 2, "no JUnit form"},
		{"alpha --save /", 2, "it is a directory"},
		{"alpha --save /missing/x", 2, "its directory"},
		{"beta", 1, "no beta in PATH"},
	} {
		code, out, errs := runVerify(t, strings.Fields(tt.args)...)
		if code != tt.code || out != "" || !strings.Contains(errs, tt.says) {
			t.Errorf("%s: exit code %d, %q, %q", tt.args, code, out, errs)
		}
	}
}

func TestVerifyChecksARuntimeOnce(t *testing.T) {
	t.Parallel()
	_, out, errs := runVerify(t, "alpha", "alpha", "--check", "prompt-dash")
	if n := strings.Count(out, "\nalpha "); n != 1 {
		t.Errorf("%d summaries in\n%s%s", n, out, errs)
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

func TestVerifySavesResults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "verified.json")
	const others = `[
  {"runtime": "zeta", "version": "2.0", "date": "2001-02-03", "results": []},
  {"runtime": "alpha", "version": "1.0", "date": "2001-02-03", "results": [{"check": "model", "status": "broken"}]}
]`
	if err := os.WriteFile(file, []byte(others), 0o644); err != nil {
		t.Fatal(err)
	}
	save := func() (records []verify.Record) {
		t.Helper()
		if code, _, errs := runVerify(t, "alpha", "--save", file, "--quiet"); code != 1 || !strings.Contains(errs, "alpha breaks ") {
			t.Errorf("exit code %d, %q", code, errs)
		}
		if err := json.Unmarshal(read(t, file), &records); err != nil || len(records) != 2 {
			t.Fatalf("%v, %+v", err, records)
		}
		return records
	}
	records := save()
	if alpha, zeta := records[0], records[1]; alpha.Runtime != "alpha" || alpha.Date < "2026" || zeta.Runtime != "zeta" || zeta.Date != "2001-02-03" {
		t.Errorf("records %+v", records)
	}
	var names []string
	for _, r := range records[0].Results {
		names = append(names, r.Check)
		switch {
		case r.Check == "prompt-dash" && (r.Status != verify.KnownFailure || r.Known != "it fails at once"),
			r.Check == "model" && (r.Status != verify.Unsupported || r.Detail == ""),
			r.Status == verify.Broken && r.Detail != "", r.Promise != "":
			t.Errorf("result %+v", r)
		}
	}
	if diff := gocmp.Diff(len(verify.Checks()), len(names)); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}

	// The same results on another day change nothing.
	old := []byte(strings.ReplaceAll(string(read(t, file)), records[0].Date, "2002-03-04"))
	if err := os.WriteFile(file, old, 0o644); err != nil {
		t.Fatal(err)
	}
	save()
	if diff := gocmp.Diff(string(old), string(read(t, file))); diff != "" {
		t.Errorf("the same results changed the file (-before +after):\n%s", diff)
	}
}

// The results of some checks replace those alone, and only of the same version.
func TestVerifySavesResultsOfSomeChecks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "verified.json")
	runVerify(t, "alpha", "--save", file, "--quiet")
	var records []verify.Record
	if err := json.Unmarshal(read(t, file), &records); err != nil || len(records) != 1 {
		t.Fatalf("%v, %+v", err, records)
	}
	for version, want := range map[string]string{
		records[0].Version: "[{prompt-dash known} {model unsupported} {usage kept}]",
		"0.0.1":            "[{usage kept} {model broken}]",
	} {
		old := fmt.Sprintf(`[{"runtime":"alpha","version":%q,"date":"2001-02-03","results":[{"check":"usage","status":"kept"},{"check":"model","status":"broken"}]}]`, version)
		if err := os.WriteFile(file, []byte(old), 0o644); err != nil {
			t.Fatal(err)
		}
		code, _, errs := runVerify(t, "alpha", "--check", "model", "--check", "prompt-dash", "--save", file)
		if refused := strings.Contains(errs, "has none of version"); refused != (version == "0.0.1") || refused != (code == 1) {
			t.Errorf("%s: exit code %d, %q", version, code, errs)
		}
		if err := json.Unmarshal(read(t, file), &records); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range records[0].Results {
			got = append(got, fmt.Sprintf("{%s %s}", r.Check, r.Status))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", version, got, want)
		}
	}
}

func TestVerifySavesNoResultsWithoutAVersion(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "verified.json")
	fails, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := runVerifyOf(t, fails, "alpha", "--save", file)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file was written: %v", err)
	}
	if code != 1 || !strings.Contains(out, "alpha of unknown version: ") || !strings.Contains(errs, "the results of alpha are not saved") {
		t.Errorf("exit code %d, %q\n%s", code, errs, out)
	}
}

// A file of something else is not lost.
func TestVerifySavesOverItsOwnFileOnly(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "package.json")
	if err := os.WriteFile(file, []byte(`{"name": "x"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, errs := runVerify(t, "alpha", "--save", file)
	if code != 2 || !strings.Contains(errs, "it has other content than results of verify; name another file") || string(read(t, file)) != `{"name": "x"}` {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestOnlyVerifyPrintsJUnit(t *testing.T) {
	t.Parallel()
	code, out, errs := call(t, "detect", "--format", "junit")
	if code != 2 || out != "" || !strings.Contains(errs, "detect has no JUnit form") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
}

// The test binary is also an agent CLI, if PATH has a link to it, that prints its version
// and fails otherwise.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "alpha" {
		if !slices.Equal(os.Args[1:], []string{"--version"}) {
			os.Exit(1)
		}
		fmt.Println("alpha", cmp.Or(os.Getenv(versionVariable), "1.2.3"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const versionVariable = "ALPHA_VERSION"

// versions runs the command with the runtimes alpha and beta, of which alpha is installed
// with a version and was verified with another.
func versions(t *testing.T, installed, verified string, args ...string) (code int, stdout string) {
	t.Helper()
	bin := install(t, self(t))
	var r registry.Registry
	for _, id := range []string{"alpha", "beta"} {
		if err := r.Register(plain(id)); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code = commands.Main(t.Context(), &commands.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Environ: []string{"PATH=" + bin, "HOME=" + t.TempDir(), versionVariable + "=" + installed}, Dir: t.TempDir(), Registry: &r,
		Targets: func() []verify.Target {
			return []verify.Target{{Runtime: "alpha", Verified: verify.Record{Version: verified, Date: "2026-01-02"}}}
		},
	})
	return code, out.String()
}

func TestDoctorComparesWithTheVerifiedVersion(t *testing.T) {
	t.Parallel()
	const newer = "check it with: bus-agent verify alpha"
	for _, tt := range []struct{ installed, verified, want string }{
		{"1.2.3", "1.2.3", "1.2.3, verified on 2026-01-02"},
		{"1.10.0", "1.9.3", "note: 1.10.0 is newer than the verified 1.9.3; " + newer},
		{"2.0", "1.9.3", "note: 2.0 is newer than the verified 1.9.3; " + newer},
		{"1.2.0", "1.2.0-rc.1", "note: 1.2.0 is newer than the verified 1.2.0-rc.1; " + newer},
		{"1.3.0-rc.1", "1.2.0", "note: 1.3.0-rc.1 is newer than the verified 1.2.0; " + newer},
		{"1.2.0-rc.1", "1.2.0", "note: 1.2.0-rc.1; verified with 1.2.0"},
		{"1.2.0+build", "1.2.0", "note: 1.2.0+build; verified with 1.2.0"},
		{"1.9.3", "1.10.0", "note: 1.9.3; verified with 1.10.0"},
		{"1.2.3", "", "note: 1.2.3; no version was tested"},
	} {
		code, out := versions(t, tt.installed, tt.verified, "doctor", "alpha")
		if code != 0 || !strings.Contains(out, "  version          "+tt.want+"\n") {
			t.Errorf("%s, verified %q: exit code %d\n%s", tt.installed, tt.verified, code, out)
		}
	}
	_, out := versions(t, "1.10.0", "1.9.3", "doctor", "alpha", "--format", "json")
	for _, want := range []string{`"version": "1.10.0"`, `"verified": "1.9.3"`, newer} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func TestDetectShowsWhatIsUnverified(t *testing.T) {
	t.Parallel()
	_, out := versions(t, "1.2.3", "1.2.2", "detect", "-v")
	for _, want := range []string{"alpha    1.2.3    1.2.2       ", "beta     -        unverified  "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if _, out := versions(t, "1.2.3", "1.2.2", "detect", "-v", "--format", "json"); strings.Count(out, `"verified": "1.2.2"`) != 1 {
		t.Errorf("JSON %s", out)
	}
}
