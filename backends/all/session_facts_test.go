package all_test

import (
	"strings"
	"testing"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/engine"
)

// A login is looked for in the folder of the account, and in the user's home
// where there is none.
func TestLoginFilesBelongToTheAccount(t *testing.T) {
	t.Parallel()
	found := 0
	for _, rt := range registry.Default().All() {
		if rt.Home.Env == "" {
			continue
		}
		for folder, variable := range map[string]string{"/home/u": "HOME", "/accounts/1": rt.Home.Env} {
			environ := map[string]string{"HOME": "/home/u", variable: folder}
			for _, file := range rt.Home.LoginFiles(func(name string) string { return environ[name] }) {
				found++
				if !strings.HasPrefix(file, folder+"/") {
					t.Errorf("%s: %s, with %s", rt.ID, file, variable)
				}
			}
		}
		if files := rt.Home.LoginFiles(func(string) string { return "" }); len(files) > 0 {
			t.Errorf("%s without a home: %s", rt.ID, files)
		}
	}
	if found < 4 {
		t.Errorf("only %d files", found)
	}
}

func TestSessionsSayHowTheyWork(t *testing.T) {
	t.Parallel()
	for _, rt := range registry.Default().All() {
		if rt.Session == nil {
			continue
		}
		if d := rt.Session.Delivers(); rt.Session.Protocol == "" || d != engine.DeliverStdin && d != engine.DeliverRPC || rt.TestedVersion == "" && rt.ID != "cursor" {
			t.Errorf("%s: protocol %q, %s, version %q", rt.ID, rt.Session.Protocol, d, rt.TestedVersion)
		}
	}
}
