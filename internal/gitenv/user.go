package gitenv

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// systemFiles are where git's own installation keeps its configuration.
var systemFiles = []string{
	"/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
	"/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
	"/usr/local/etc/gitconfig",
	"/opt/homebrew/etc/gitconfig",
	"/etc/gitconfig",
}

// userConfig returns the configuration of the system, of the user and of the
// environment, the strongest last. What cannot be read is left out, and so is what
// is included under a condition.
func userConfig(environ []string) []entry {
	get := func(name string) string {
		value, _ := agent.LookupEnv(environ, name)
		return value
	}
	home := get("HOME")
	var files []string
	if system := get("GIT_CONFIG_SYSTEM"); system != "" {
		files = append(files, system)
	} else if !isBool(get("GIT_CONFIG_NOSYSTEM")) || isFalse(get("GIT_CONFIG_NOSYSTEM")) {
		files = append(files, systemFiles...)
	}
	if global, ok := agent.LookupEnv(environ, "GIT_CONFIG_GLOBAL"); ok {
		files = append(files, global)
	} else {
		if xdg := get("XDG_CONFIG_HOME"); xdg != "" {
			files = append(files, filepath.Join(xdg, "git/config"))
		} else if home != "" {
			files = append(files, filepath.Join(home, ".config/git/config"))
		}
		if home != "" {
			files = append(files, filepath.Join(home, ".gitconfig"))
		}
	}
	u := user{home: home}
	for _, name := range files {
		u.read(name, 0)
	}
	count, _ := strconv.Atoi(get("GIT_CONFIG_COUNT"))
	for i := range min(count, maxFiles) {
		n := strconv.Itoa(i)
		u.add(get("GIT_CONFIG_KEY_"+n), get("GIT_CONFIG_VALUE_"+n))
	}
	for _, pair := range parameters(get("GIT_CONFIG_PARAMETERS")) {
		u.add(pair[0], pair[1])
	}
	return u.entries
}

func isFalse(value string) bool {
	return isBool(value) && strings.Contains("false no off 0", strings.ToLower(value))
}

type user struct {
	home    string
	entries []entry
	files   int
}

func (u *user) read(name string, depth int) {
	text, err := readFile(name)
	if u.files++; err != nil || depth > maxDepth || u.files > maxFiles {
		return
	}
	entries, err := parse(text)
	if err != nil {
		return
	}
	for _, e := range entries {
		u.entries = append(u.entries, e)
		if path, ok := include(e); ok && strings.HasPrefix(e.key, "include.") {
			if target, err := (&finder{home: u.home}).included(name, path); err == nil {
				u.read(target, depth+1)
			}
		}
	}
}

// add adds a variable whose key is not canonical yet.
func (u *user) add(key, value string) {
	section, sub, name := split(key)
	if name == "" {
		return
	}
	key = strings.ToLower(section) + "."
	if sub != "" {
		key += sub + "."
	}
	u.entries = append(u.entries, entry{key: key + strings.ToLower(name), value: value})
}

// parameters returns the pairs of a GIT_CONFIG_PARAMETERS, until the first that is
// malformed.
func parameters(text string) (pairs [][2]string) {
	for {
		text = strings.TrimLeft(text, " ")
		key, rest, ok := dequote(text)
		if !ok {
			return pairs
		}
		value := "true"
		if v, isNew := strings.CutPrefix(rest, "="); isNew { // 'key'='value'
			rest = v
			if strings.HasPrefix(v, "'") {
				if value, rest, ok = dequote(v); !ok {
					return pairs
				}
			}
		} else if k, v, isPair := strings.Cut(key, "="); isPair { // 'key=value'
			key, value = k, v
		}
		pairs, text = append(pairs, [2]string{key, value}), rest
	}
}

// dequote reads a word in single quotes as git writes it.
func dequote(text string) (word, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "'")
	for ok {
		part, after, closed := strings.Cut(text, "'")
		if !closed {
			return "", "", false
		}
		word += part
		if len(after) >= 3 && after[0] == '\\' && (after[1] == '\'' || after[1] == '!') && after[2] == '\'' {
			word, text = word+after[1:2], after[3:]
			continue
		}
		return word, after, true
	}
	return "", "", false
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
