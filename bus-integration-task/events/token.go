package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/busdk/bus-integration-task/internal/unix"
)

// TokenSource returns a token. rejected is "" on the first call of a request; after a 401
// it is the token that the server refused. A source that has no other token then returns
// the same one. Requests call it at the same time.
type TokenSource func(ctx context.Context, rejected string) (string, error)

// StaticToken returns the token given.
func StaticToken(token string) TokenSource {
	return func(context.Context, string) (string, error) { return token, nil }
}

// TokenFile reads the token from a file, for each request anew, since tokens are
// rotated. The file must be a regular file that only its owner can read, unless it is on a
// read-only mount, as the secrets of containers are. It must not be in a Git repository:
// what is in a repository comes from others.
//
// A file that is missing, empty or unreadable may be one that is being replaced, so the
// source waits up to five seconds for it. Then it fails with [ErrUnauthorized] if the file
// is missing, empty or not for this user, and with [ErrUnavailable] otherwise.
func TokenFile(path string) TokenSource { return tokenFile(path, 5*time.Second) }

func tokenFile(path string, patience time.Duration) TokenSource {
	const pause = 20 * time.Millisecond
	return func(ctx context.Context, _ string) (string, error) {
		for began := time.Now(); ; {
			token, err := readToken(path)
			if err == nil || errors.Is(err, errUnsafe) {
				return token, err
			}
			if time.Since(began) >= patience {
				if errors.Is(err, errEmpty) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
					return "", err
				}
				return "", unavailable("token", err)
			}
			if err := sleep(ctx, pause); err != nil {
				return "", unavailable("token", err)
			}
		}
	}
}

// TokenOptions are where ResolveToken looks.
type TokenOptions struct {
	// File is the file that the user named on the command line; "" for none.
	File string
	// Getenv is os.Getenv or like it; nil for an empty environment.
	Getenv func(string) string
}

// ResolveToken returns the first of these that is set: o.File, the file named by
// BUS_EVENTS_TOKEN_FILE, the token in BUS_API_TOKEN, and the file auth/api-token in the
// Bus configuration folder, which is BUS_CONFIG_DIR, else bus in XDG_CONFIG_HOME, else
// .config/bus in HOME. Blank variables are not set. It reads a file once, so that a
// mistake is found at the start. It fails with [ErrUnauthorized].
func ResolveToken(o TokenOptions) (TokenSource, error) {
	getenv := func(name string) string {
		if o.Getenv == nil {
			return ""
		}
		return strings.TrimSpace(o.Getenv(name))
	}
	file := o.File
	if file == "" {
		file = getenv("BUS_EVENTS_TOKEN_FILE")
	}
	if token := getenv("BUS_API_TOKEN"); file == "" && token != "" {
		if !validToken(token) {
			return nil, tokenError(errors.New("BUS_API_TOKEN: not one line of printable characters"))
		}
		return StaticToken(token), nil
	}
	if file == "" {
		file = configuredToken(getenv)
		if file == "" || !exists(file) {
			return nil, tokenError(errors.New("none found; name a token file, or set BUS_EVENTS_TOKEN_FILE or BUS_API_TOKEN"))
		}
	}
	if _, err := readToken(file); err != nil {
		return nil, tokenError(err)
	}
	return TokenFile(file), nil
}

func configuredToken(getenv func(string) string) string {
	root := getenv("BUS_CONFIG_DIR")
	if root == "" {
		if base := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(base) {
			root = filepath.Join(base, "bus")
		} else if home := getenv("HOME"); filepath.IsAbs(home) {
			root = filepath.Join(home, ".config", "bus")
		}
	}
	if root == "" {
		return ""
	}
	return filepath.Join(root, "auth", "api-token")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

const maxTokenBytes = 16 << 10

// Errors of readToken. All others are those of the system.
var (
	errUnsafe = errors.New("refused") // the file must not be used, whatever it has later
	errEmpty  = errors.New("not a token: it is empty")
)

// refusal is an errUnsafe error.
type refusal string

func refuse(path, why string) error { return refusal(path + ": " + why) }

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == errUnsafe }

func readToken(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", err
	}
	if repository := repositoryOf(real); repository != "" {
		return "", refuse(path, "it is in the Git repository "+repository+"; move it out")
	}
	// A pipe or device is refused before it is opened, since opening it could wait.
	if info, err := os.Stat(real); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", refuse(path, "not a regular file")
	}
	file, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := checkTokenFile(path, file); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxTokenBytes+1))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return "", fmt.Errorf("%s: %w", path, errEmpty)
	case len(text) > maxTokenBytes || !validToken(token):
		return "", refuse(path, "not a token: it must be one line of printable characters")
	}
	return token, nil
}

// checkTokenFile refuses a file that other users can read or write. A read-only mount is
// made by an administrator for a container, and often gives everyone in it the right to
// read.
func checkTokenFile(path string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	switch {
	case !info.Mode().IsRegular():
		return refuse(path, "not a regular file")
	case info.Mode().Perm()&0o077 != 0 && !unix.IsReadOnly(file):
		return refuse(path, "other users can read or write it; run chmod 600 on it")
	}
	return nil
}

// repositoryOf returns the Git repository that a file is in. The home folder is not
// taken for one, since users keep their settings in Git.
func repositoryOf(file string) string {
	home, _ := os.UserHomeDir()
	for dir := filepath.Dir(file); dir != home; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return ""
}

// validToken reports whether a token fits into a header.
func validToken(token string) bool {
	return token != "" && len(token) <= maxTokenBytes &&
		!strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

func tokenError(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return &Error{Kind: ErrUnauthorized, Message: "token", cause: err}
}
