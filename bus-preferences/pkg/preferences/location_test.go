package preferences

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestLocate(t *testing.T) {
	t.Parallel()
	type env map[string]string
	for _, test := range []struct {
		name    string
		windows bool
		env     env
		path    string
		old     []string
	}{
		{
			name: "the file itself comes first, as it is written, and nothing is migrated",
			env:  env{"BUS_PREFERENCES_PATH": " rel/p.json", "BUS_CONFIG_DIR": "/c", "XDG_CONFIG_HOME": "/x", "HOME": "/h"},
			path: " rel/p.json",
		},
		{
			name: "the configuration directory comes second",
			env:  env{"BUS_CONFIG_DIR": "/c", "XDG_CONFIG_HOME": "/x", "HOME": "/h"},
			path: "/c/preferences.json",
			old:  []string{"/x/busdk/preferences.json", "/h/.config/busdk/preferences.json"},
		},
		{
			name: "blank is not set",
			env:  env{"BUS_PREFERENCES_PATH": " ", "BUS_CONFIG_DIR": "\t\n", "XDG_CONFIG_HOME": " ", "HOME": "/h"},
			path: "/h/.config/bus/preferences.json",
			old:  []string{"/h/.config/busdk/preferences.json"},
		},
		{
			name: "XDG comes before HOME",
			env:  env{"XDG_CONFIG_HOME": "/x", "HOME": "/h", "APPDATA": "/a"},
			path: "/x/bus/preferences.json",
			old:  []string{"/x/busdk/preferences.json", "/h/.config/busdk/preferences.json"},
		},
		{
			name: "a relative XDG path is ignored",
			env:  env{"XDG_CONFIG_HOME": "x", "HOME": "/h"},
			path: "/h/.config/bus/preferences.json",
			old:  []string{"/h/.config/busdk/preferences.json"},
		},
		{
			name:    "Windows knows APPDATA alone",
			windows: true,
			env:     env{"APPDATA": "/a", "XDG_CONFIG_HOME": "/x", "HOME": "/h"},
			path:    "/a/Bus/preferences.json",
			old:     []string{"/a/BusDK/preferences.json"},
		},
		{
			name:    "the configuration directory on Windows",
			windows: true,
			env:     env{"APPDATA": "/a", "BUS_CONFIG_DIR": "/c"},
			path:    "/c/preferences.json",
			old:     []string{"/a/BusDK/preferences.json"},
		},
		{name: "nothing is set"},
		{name: "a relative HOME", env: env{"HOME": "h"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := locate(func(name string) string { return test.env[name] }, test.windows)
			if want := filepath.FromSlash(test.path); got.path != want {
				t.Errorf("path = %q, want %q", got.path, want)
			}
			if !slices.Equal(got.old, test.old) {
				t.Errorf("old = %q, want %q", got.old, test.old)
			}
		})
	}
}
