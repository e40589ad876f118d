package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/agent"
)

// SystemSecrets is where deployments mount secrets.
const SystemSecrets = "/run/secrets"

const maxSecret = 16 << 10

// Secrets reads deployment secrets.
type Secrets struct {
	// Environ is the environment of the worker.
	Environ []string
	// Dirs are the folders to search, in order. See [Settings.SecretDirs].
	Dirs []string
}

// SecretDirs returns the folders of deployment secrets, in the order of their precedence.
func (s *Settings) SecretDirs() []string {
	if s.DeploymentSecrets == "" {
		return []string{SystemSecrets}
	}
	return []string{s.DeploymentSecrets, SystemSecrets}
}

// OpenAIKey returns the API key for the auth mode openai-api-key: OPENAI_API_KEY if it is
// set, otherwise the file ref, one path segment, in the first of Dirs that has it. The
// key is for the environment of the agent alone; no error contains it. Errors are of kind
// agent.ErrUsage.
func (s Secrets) OpenAIKey(ref string) (string, error) {
	if key, _ := agent.LookupEnv(s.Environ, "OPENAI_API_KEY"); strings.TrimSpace(key) != "" {
		return strings.TrimSpace(key), nil
	}
	name, err := secretRef.parse(ref)
	if err != nil || name == "" {
		return "", agent.Usagef("%s is not the name of a deployment secret; use letters, digits, '.', '_' and '-'", quote(ref))
	}
	for _, dir := range s.Dirs {
		key, err := readSecret(dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", agent.Usagef("deployment secret %s in %s: %v", name, dir, err)
		default:
			return key, nil
		}
	}
	return "", agent.Usagef("deployment secret %s: not found in %s; mount it, or set OPENAI_API_KEY", name, strings.Join(s.Dirs, " or "))
}

func readSecret(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	key := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		return "", err
	case len(text) > maxSecret:
		return "", fmt.Errorf("it has more than %d bytes", maxSecret)
	case key == "":
		return "", errors.New("it is empty")
	case strings.ContainsAny(key, "\x00\r\n"):
		return "", errors.New("it has more than one line or a NUL")
	}
	return key, nil
}
