package preferences

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const fileName = "preferences.json"

// A store is a preferences file. The zero value has no location.
type store struct {
	path string
	old  []string // locations of earlier versions, in order of preference
}

// userStore returns the store that the environment names.
func userStore() store { return locate(os.Getenv, runtime.GOOS == "windows") }

func locate(getenv func(string) string, windows bool) store {
	get := func(name string) string {
		value := getenv(name)
		if strings.TrimSpace(value) == "" {
			return ""
		}
		return value
	}
	if path := get("BUS_PREFERENCES_PATH"); path != "" {
		return store{path: path}
	}

	folder, oldFolder := "bus", "busdk"
	var roots []string
	if windows {
		folder, oldFolder = "Bus", "BusDK"
		if root := get("APPDATA"); root != "" {
			roots = append(roots, root)
		}
	} else {
		if root := get("XDG_CONFIG_HOME"); filepath.IsAbs(root) {
			roots = append(roots, root)
		}
		if home := get("HOME"); filepath.IsAbs(home) {
			roots = append(roots, filepath.Join(home, ".config"))
		}
	}

	var s store
	for _, root := range roots {
		s.old = append(s.old, filepath.Join(root, oldFolder, fileName))
	}
	switch dir := get("BUS_CONFIG_DIR"); {
	case dir != "":
		s.path = filepath.Join(dir, fileName)
	case len(roots) > 0:
		s.path = filepath.Join(roots[0], folder, fileName)
	}
	return s
}
