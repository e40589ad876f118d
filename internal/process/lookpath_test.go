package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // not parallel
	for name, mode := range map[string]fs.FileMode{"one/agent": 0o755, "two/agent": 0o755, "plain/agent": 0o644, "here": 0o755} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("folder/agent", 0o755); err != nil {
		t.Fatal(err)
	}
	abs := func(names ...string) string {
		for i, name := range names {
			names[i] = filepath.Join(dir, name)
		}
		return strings.Join(names, ":")
	}
	for name, test := range map[string]struct {
		name, path string
		want       string
		is         error
	}{
		"first match":                {"agent", abs("none", "one", "two"), abs("one/agent"), nil},
		"not executable":             {"agent", abs("plain", "two"), abs("two/agent"), nil},
		"folder":                     {"agent", abs("folder", "two"), abs("two/agent"), nil},
		"no match":                   {"agent", abs("plain", "folder"), "", fs.ErrNotExist},
		"empty PATH":                 {"agent", "", "", fs.ErrNotExist},
		"empty name":                 {"", abs("one"), "", fs.ErrNotExist},
		"relative match":             {"agent", "one:" + abs("two"), "", ErrRelativePath},
		"dot":                        {"here", ".", "", ErrRelativePath},
		"empty entry":                {"here", abs("one") + "::" + abs("two"), "", ErrRelativePath},
		"relative entry, no match":   {"agent", "none:" + abs("two"), abs("two/agent"), nil},
		"relative entry after match": {"agent", abs("two") + ":one", abs("two/agent"), nil},
		"absolute name":              {abs("one/agent"), "", abs("one/agent"), nil},
		"absolute name, unclean":     {dir + "//one/../two/agent", "", abs("two/agent"), nil},
		"absolute, missing":          {abs("none/agent"), "", "", fs.ErrNotExist},
		"absolute, not executable":   {abs("plain/agent"), "", "", fs.ErrPermission},
		"relative name":              {"one/agent", abs("one"), "", ErrRelativePath},
		"relative name with a dot":   {"./here", dir, "", ErrRelativePath},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := LookPath(test.name, test.path)
			if got != test.want || !errors.Is(err, test.is) || (err == nil) != (test.is == nil) {
				t.Errorf("got %q, %v; want %q, %v", got, err, test.want, test.is)
			}
			if errors.Is(err, ErrRelativePath) && !strings.Contains(err.Error(), "absolute") {
				t.Errorf("%q does not say what to do", err)
			}
		})
	}
}
