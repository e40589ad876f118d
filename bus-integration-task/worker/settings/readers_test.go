package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Each field of Settings is read by a package that acts on it.
func TestEveryFieldHasAReader(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, pattern := range []string{"*.go", "../*.go", "../../cmd/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || name == "table.go" {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	of := reflect.TypeFor[Settings]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		if !of.Field(i).IsExported() {
			continue
		}
		if reads := regexp.MustCompile(`\b(s|[sS]ettings)\.` + name + `\b`).FindString(code.String()); reads == "" {
			t.Errorf("nothing reads Settings.%s", name)
		}
	}
}
