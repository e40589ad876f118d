package gemini

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
)

func TestEnvironmentFilesOfTheRepositoryAreRefused(t *testing.T) {
	t.Parallel()
	for _, file := range []string{".gemini/.env", "sub/deep/.gemini/.env", "../.gemini/.env"} {
		p := newPlace(t, map[string]string{file: "BASH_ENV=x\n"})
		_, err := p.prepare(t, "sub/deep")
		if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), filepath.Join(p.root, file)) {
			t.Errorf("%s: %v", file, err)
		}
		if _, err := os.Lstat(filepath.Join(p.root, "sub/deep/.gemini/bus")); err == nil {
			t.Errorf("%s: a home was left behind", file)
		}
		p.req.TrustWorkspace = true
		closeSetup(t, p.mustPrepare(t, "sub/deep"))
	}
}

func TestTheUsersOwnEnvironmentFileCounts(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{".gemini/.env": "A=b\n"})
	p.req.Environ = []string{"HOME=" + p.root}
	closeSetup(t, p.mustPrepare(t, "sub"))
}

// Settings that would let a .env in are refused, for runs: Gemini CLI reads them
// again, as those of a folder it trusts, when it starts slowly.
func TestSettingsThatLetVariablesInAreRefused(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		`{}`:                                   false,
		`{"advanced":{}}`:                      false,
		`{"advanced":{"ignoreLocalEnv":true}}`: false,
		"{\n// mine\n\"advanced\": {\"excludedEnvVars\": []}\n}":                   false,
		`{"advanced":{"ignoreLocalEnv":false},"advanced":{"ignoreLocalEnv":true}}`: false,
		`{"advanced":{"ignoreLocalEnv":true},"advanced":{"ignoreLocalEnv":false}}`: true,
		`{"advanced":{"ignoreLocalEnv":false}}`:                                    true,
		`{"advanced":{"ignoreLocalEnv":"true"}}`:                                   true,
		`{"advanced":{"ignoreLocalEnv":null}}`:                                     true,
		`{"\u0061dvanced":{"ignore\u004cocalEnv":false}}`:                          true,
		`{"advanced":null}`: true,
		`{"advanced":[]}`:   true,
		`{"advanced":"x"}`:  true,
		`{`:                 true,
		`[]`:                true,
	} {
		p := newPlace(t, map[string]string{"sub/.gemini/settings.json": text})
		_, err := p.prepare(t, "sub")
		named := err != nil && strings.Contains(err.Error(), filepath.Join(p.root, "sub", settingsPath))
		if refused != errors.Is(err, agent.ErrUsage) || refused != named {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := os.Lstat(filepath.Join(p.root, "sub/.gemini/bus")); refused && err == nil {
			t.Errorf("%s: a home was left behind", text)
		}
		p.req.TrustWorkspace = true
		if _, err := p.prepare(t, "sub"); err != nil {
			t.Errorf("%s: with trust: %v", text, err)
		}
	}
	p := newPlace(t, map[string]string{"~/.gemini/settings.json": `{"advanced":{"ignoreLocalEnv":false}}`})
	p.req.Root = p.root
	if err := refuseEnvSetting(p.req, p.home); err != nil {
		t.Errorf("in the user's home: %v", err)
	}
}

// A session is never trusted, so no setting lets a .env in.
func TestSettingsThatLetVariablesInAreFineInASession(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{settingsPath: `{"advanced":{"ignoreLocalEnv":false}}`})
	if err := refuseVariables(p.req, p.root, true); err != nil {
		t.Error(err)
	}
	if err := refuseVariables(p.req, p.root, false); err == nil {
		t.Error("a run is not refused: this test proves nothing")
	}
}

// A home of the caller's is used as it is, so a .env that its settings do not
// keep out is refused.
func TestVariablesInAHomeOfTheCaller(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file, settings string
		trust, refused bool
	}{
		{file: ".env", refused: true},
		{file: "sub/.env", refused: true},
		{file: "../.env", refused: true},
		{file: ".env", settings: `{"advanced":{"ignoreLocalEnv":false}}`, refused: true},
		{file: ".env", settings: `{"advanced":[]}`, refused: true},
		{file: ".env", settings: `{`, refused: true},
		{file: ".env", settings: `{"advanced":{"ignoreLocalEnv":true}}`},
		{file: ".env", trust: true},
		{file: "~/.env"},
		{file: "sub/deep/.env"},
	} {
		files := map[string]string{test.file: "BASH_ENV=x\n", "~/own/.keep": ""}
		if test.settings != "" {
			files["~/own/"+settingsPath] = test.settings
		}
		p := newPlace(t, files)
		own := homeEnv + "=" + filepath.Join(p.home, "own")
		p.req.Env = []string{own}
		p.req.Environ = append(p.req.Environ, own)
		p.req.Access, p.req.TrustWorkspace = agent.AccessFull, test.trust
		_, err := p.prepare(t, "sub")
		if test.refused != errors.Is(err, agent.ErrUsage) || test.refused != (err != nil) {
			t.Errorf("%+v: %v", test, err)
		}
		if err != nil && !strings.Contains(err.Error(), filepath.Join(p.root, test.file)) {
			t.Errorf("%+v: %v does not name the file", test, err)
		}
	}
}
