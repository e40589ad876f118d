package main

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
)

// The table of products has every program of the released modules.
func TestEveryProgramIsReleased(t *testing.T) {
	t.Parallel()
	list, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	internalFiles := regexp.MustCompile(`(^|/)(internal|examples|testdata|acceptance|test)/|_test\.go$`)
	var programs, released []string
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		if internalFiles.MatchString(name) {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", name), nil, parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if source.Name.Name == "main" {
			programs = append(programs, importPath(t, path.Dir(name)))
		}
	}
	for _, p := range products {
		released = append(released, p.programs...)
	}
	slices.Sort(programs)
	slices.Sort(released)
	if programs = slices.Compact(programs); !slices.Equal(programs, released) {
		t.Errorf("the repository has the programs\n%s\nreleased are\n%s", strings.Join(programs, "\n"), strings.Join(released, "\n"))
	}
}

// importPath returns the import path of a folder of the repository.
func importPath(t *testing.T, dir string) string {
	for module := dir; ; module = path.Dir(module) {
		data, err := os.ReadFile(filepath.Join("../..", module, "go.mod"))
		if err == nil {
			return path.Join(modfile.ModulePath(data), strings.TrimPrefix(strings.TrimPrefix(dir, module), "/"))
		}
		if module == "." {
			t.Fatalf("%s is in no module", dir)
		}
	}
}

func TestManPages(t *testing.T) {
	t.Parallel()
	pages, err := manPages("../../docs/cli.md", "v1.2.3", time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, page := range pages {
		shown[path.Base(page.name)] = string(page.data)
	}
	for name, want := range map[string]string{
		"bus-agent.1":                "\n.SH NAME\nbus\\-agent \\- Run AI coding agents through one interface\n.SH DESCRIPTION\n",
		"bus-agent-run.1":            "\nbus\\-agent run [FLAGS]",
		"bus-agent-session-start.1":  ".TH \"BUS-AGENT-SESSION-START\" 1 \"2030-01-02\" \"bus-agent v1.2.3\"\n",
		"bus-agent-runs-list.1":      "\n.PP\nFlags that bus\\-agent describes: \\-\\-runs\\-root.\n",
		"bus-agent-runtime-doctor.1": "The same as doctor\n",
	} {
		if !strings.Contains(shown[name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, shown[name])
		}
	}
	for name, page := range shown {
		if strings.Count(page, "\n.nf\n") != strings.Count(page, "\n.fi\n") || strings.Contains(page, "```") {
			t.Errorf("%s has a block that does not begin or end:\n%s", name, page)
		}
		for line := range strings.Lines(page) {
			if regexp.MustCompile(`^\.(TH|SH|PP|nf|fi|BR)\b`).MatchString(line) {
				continue
			}
			if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
				t.Errorf("%s has the request %q", name, line)
			}
		}
	}
}

// The image has the pinned versions of the CLIs.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	image, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	pins, err := os.ReadFile("../../scripts/agents.txt")
	if err != nil {
		t.Fatal(err)
	}
	argument := regexp.MustCompile(`(?m)^ARG ([A-Z]+)_VERSION=(\S+)$`)
	arguments := argument.FindAllStringSubmatch(string(image), -1)
	if len(arguments) != 3 {
		t.Errorf("the arguments are %q", arguments)
	}
	for _, a := range arguments {
		pin := regexp.MustCompile(`(?m)^` + strings.ToLower(a[1]) + ` +(\S+) +(\S+)$`).FindStringSubmatch(string(pins))
		if pin == nil || pin[2] != a[2] || !strings.Contains(string(image), `"`+pin[1]+"@${"+a[1]+`_VERSION}"`) {
			t.Errorf("the image has %s %s, want %q", a[1], a[2], pin)
		}
	}
}
