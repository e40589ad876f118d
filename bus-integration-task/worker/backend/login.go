package backend

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/registry"
)

// LoginSecrets returns the keys and tokens in the login files of the user, and in their
// copies in the state folder of a task, for Attempt.Hidden: an agent can read them. Files
// in another form than JSON have none.
func (b *Session) LoginSecrets(stateDir string) []string {
	var secrets []string
	for _, token := range b.tokens() {
		rt, err := b.lookup(token)
		if err != nil {
			continue // Check reports it
		}
		inv := registry.Invocation{Workdir: string(filepath.Separator), Environ: inherited(b.Runner.Environ)}
		folders := []string{inv.UserHome(rt.Home)}
		if stateDir != "" {
			folders = append(folders, filepath.Join(stateDir, rt.ID))
		}
		for _, folder := range folders {
			if folder == "" {
				continue
			}
			for _, name := range rt.Home.Logins {
				secrets = append(secrets, secretsOf(filepath.Join(folder, filepath.FromSlash(name)))...)
			}
		}
	}
	return secrets
}

// secretsOf returns the secrets in a login file as entries of an environment.
func secretsOf(name string) []string {
	text, err := readRegular(name)
	var value any
	if err != nil || json.Unmarshal(text, &value) != nil {
		return nil
	}
	return secretsIn(nil, "", value)
}

func secretsIn(list []string, name string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for name, value := range v {
			list = secretsIn(list, name, value)
		}
	case []any:
		for _, value := range v {
			list = secretsIn(list, name, value)
		}
	case string:
		name = strings.ToLower(name)
		for _, end := range []string{"key", "token", "secret"} { // access_token, accessToken, OPENAI_API_KEY
			if strings.HasSuffix(name, end) {
				return append(list, "BUS_LOGIN_SECRET="+v)
			}
		}
	}
	return list
}

// readRegular reads a regular file that is small enough for a login.
func readRegular(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxStateFile {
		return nil, os.ErrNotExist
	}
	return os.ReadFile(name)
}
