package preferences

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func newStore(t *testing.T) store {
	t.Helper()
	return store{path: filepath.Join(t.TempDir(), "bus", fileName)}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSetGetUnset(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)

	check(t, s.setString(ctx, "bus-agent.runtime", "codex <&>"))
	check(t, s.setJSON(ctx, "bus-dev.ui", json.RawMessage(`{"theme": "dark", "size": 1.50}`)))
	want := `{
  "values": {
    "bus-agent.runtime": "codex <&>",
    "bus-dev.ui": {
      "size": 1.50,
      "theme": "dark"
    }
  },
  "version": 1
}
`
	if got := content(t, s.path); got != want {
		t.Errorf("the file is\n%swant\n%s", got, want)
	}

	if got, ok, err := s.getString(ctx, "bus-agent.runtime"); got != "codex <&>" || !ok || err != nil {
		t.Errorf("getString = %q, %v, %v", got, ok, err)
	}
	if got, ok, err := s.get(ctx, "bus-dev.ui"); string(got) != `{"size":1.50,"theme":"dark"}` || !ok || err != nil {
		t.Errorf("get = %s, %v, %v", got, ok, err)
	}
	if _, ok, err := s.getString(ctx, "bus-dev.ui"); !ok || !errors.Is(err, ErrNotString) {
		t.Errorf("getString of an object = %v, %v, want true, ErrNotString", ok, err)
	}
	if got, ok, err := s.get(ctx, "bus-dev"); got != nil || ok || err != nil {
		t.Errorf("get of a key that is not set = %s, %v, %v", got, ok, err)
	}
	if got, ok, err := s.getString(ctx, "bus-dev"); got != "" || ok || err != nil {
		t.Errorf("getString of a key that is not set = %q, %v, %v", got, ok, err)
	}

	check(t, s.unset(ctx, "bus-agent.runtime"))
	check(t, s.unset(ctx, "bus-agent.runtime"))
	if _, ok, err := s.get(ctx, "bus-agent.runtime"); ok || err != nil {
		t.Errorf("get of an unset key = %v, %v", ok, err)
	}
	if got := files(t, filepath.Dir(s.path)); got != "preferences.json preferences.json.lock" {
		t.Errorf("files = %s", got)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	writeFile(t, s.path, `{"values":{"b.c":[ 2 ],"a":1,"b":"x","b-c":3,"Not A Key":4,"b.a.a":null}}`)
	for _, test := range []struct{ prefix, want string }{
		{"", `a=1 b="x" b-c=3 b.a.a=null b.c=[2] `},
		{"b", `b="x" b.a.a=null b.c=[2] `},
		{"b.a", `b.a.a=null `},
		{"c", ""},
	} {
		items, err := s.list(ctx, test.prefix)
		check(t, err)
		var got strings.Builder
		for _, item := range items {
			got.WriteString(item.Key + "=" + string(item.Value) + " ")
		}
		if got.String() != test.want {
			t.Errorf("list(%q) = %s, want %s", test.prefix, &got, test.want)
		}
	}
}

func TestMissingFileIsEmptyAndNotCreated(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	if _, ok, err := s.get(ctx, "a"); ok || err != nil {
		t.Errorf("get = %v, %v", ok, err)
	}
	if items, err := s.list(ctx, ""); len(items) != 0 || err != nil {
		t.Errorf("list = %v, %v", items, err)
	}
	check(t, s.unset(ctx, "a"))
	if _, err := os.Lstat(filepath.Dir(s.path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was created: %v", err)
	}
}

func TestEmptyFileIsEmpty(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	writeFile(t, s.path, "\n")
	check(t, s.setString(ctx, "a", "x"))
	if got, _, err := s.getString(ctx, "a"); got != "x" || err != nil {
		t.Errorf("getString = %q, %v", got, err)
	}
}

func TestNoLocation(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if _, ok, err := (store{}).get(ctx, "a"); ok || err != nil {
		t.Errorf("get = %v, %v", ok, err)
	}
	if err := (store{}).setString(ctx, "a", "x"); !errors.Is(err, ErrNoLocation) {
		t.Errorf("setString = %v, want ErrNoLocation", err)
	}
}

func TestInvalidArguments(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	wantInvalidKey := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrInvalidKey) {
			t.Errorf("error = %v, want ErrInvalidKey", err)
		}
	}
	_, _, err := s.get(ctx, "A")
	wantInvalidKey(err)
	_, _, err = s.getString(ctx, "a..b")
	wantInvalidKey(err)
	_, err = s.list(ctx, "a.")
	wantInvalidKey(err)
	wantInvalidKey(s.unset(ctx, ""))
	wantInvalidKey(s.setString(ctx, "a b", "x"))
	wantInvalidKey(s.setJSON(ctx, "a:b", json.RawMessage("1")))

	for _, raw := range []string{"", "{", "1 1", `{"a":1,"a":2}`, "\"\xff\"", "secret"} {
		err := s.setJSON(ctx, "a", json.RawMessage(raw))
		if !errors.Is(err, ErrInvalidJSON) {
			t.Errorf("setJSON(%q) = %v, want ErrInvalidJSON", raw, err)
		} else if raw == "secret" && strings.Contains(err.Error(), raw) {
			t.Errorf("the error contains the value: %v", err)
		}
	}
	if err := s.setString(ctx, "a", "\xff"); !errors.Is(err, ErrInvalidJSON) {
		t.Errorf("setString = %v, want ErrInvalidJSON", err)
	}
	if _, err := os.Lstat(filepath.Dir(s.path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
}

func TestMalformedFileIsNotModified(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		"{", "null", "[]", `{"values":null}`, `{"values":[]}`, `{"version":"1"}`, `{"version":1.5}`, `{"version":null}`,
		`{"values":{"a":1,"a":2}}`, `{"version":1}{}`, "{\"values\":{\"a\":\"\xff\"}}", `{"values":{"a":"\ud800"}}`,
		strings.Repeat(" ", maxFileSize) + "{}",
	} {
		ctx, s := t.Context(), newStore(t)
		writeFile(t, s.path, data)
		_, _, getErr := s.get(ctx, "a")
		_, listErr := s.list(ctx, "")
		for _, err := range []error{getErr, listErr, s.setString(ctx, "a", "x"), s.unset(ctx, "a")} {
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), s.path) {
				t.Errorf("%.40q: error = %v, want ErrMalformed with the path", data, err)
			}
		}
		if content(t, s.path) != data {
			t.Errorf("%.40q: the file was changed", data)
		}
	}
}

func TestNewerVersionIsReadOnly(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "0", "-1"} {
		ctx, s := t.Context(), newStore(t)
		data := `{"version":` + version + `,"values":{"a":"x"}}`
		writeFile(t, s.path, data)
		if got, ok, err := s.getString(ctx, "a"); got != "x" || !ok || err != nil {
			t.Errorf("getString = %q, %v, %v", got, ok, err)
		}
		for _, err := range []error{s.setString(ctx, "a", "y"), s.unset(ctx, "a")} {
			if !errors.Is(err, ErrUnknownVersion) || !strings.Contains(err.Error(), s.path) {
				t.Errorf("error = %v, want ErrUnknownVersion with the path", err)
			}
		}
		if content(t, s.path) != data {
			t.Error("the file was changed")
		}
	}
}

func TestUnknownMembersAreKept(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	writeFile(t, s.path, `{"zzz":[1.10],"values":{"Not A Key":{"b":1,"a":2}},"$schema":"s"}`)
	check(t, s.setString(ctx, "a", "x"))
	check(t, s.unset(ctx, "a"))
	want := `{
  "$schema": "s",
  "values": {
    "Not A Key": {
      "a": 2,
      "b": 1
    }
  },
  "version": 1,
  "zzz": [
    1.10
  ]
}
`
	if got := content(t, s.path); got != want {
		t.Errorf("the file is\n%swant\n%s", got, want)
	}
}

func TestDeepestValue(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	raw := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	check(t, s.setJSON(ctx, "a", json.RawMessage(raw)))
	if got, _, err := s.get(ctx, "a"); string(got) != raw || err != nil {
		t.Errorf("get = %.20s, %v", got, err)
	}
}

func TestFileSizeIsLimited(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	check(t, s.setString(ctx, "a", "x"))
	before := content(t, s.path)
	if err := s.setString(ctx, "b", strings.Repeat("x", maxFileSize)); err == nil {
		t.Error("setString succeeded")
	}
	if content(t, s.path) != before {
		t.Error("the file was changed")
	}
}

func TestCanceledContext(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	check(t, s.setString(t.Context(), "a", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, getErr := s.get(ctx, "a")
	_, listErr := s.list(ctx, "")
	for _, err := range []error{getErr, listErr, s.setString(ctx, "a", "y"), s.unset(ctx, "a")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want context.Canceled", err)
		}
	}
	if got, _, err := s.getString(t.Context(), "a"); got != "x" || err != nil {
		t.Errorf("getString = %q, %v", got, err)
	}
}
