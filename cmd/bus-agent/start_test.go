package main

import (
	"fmt"
	"strings"
	"testing"
)

// Every command pays for what packages do before main begins: none of ours may
// compile patterns, fill large tables or read anything there.
func TestPackagesDoLittleBeforeMain(t *testing.T) {
	t.Parallel()
	const most = 8 << 10 // bytes a package may allocate
	s := newSandbox(t, "claude", "")
	version := s.command("--version")
	version.Env = append(version.Env, "GODEBUG=inittrace=1")
	out, err := version.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		// init NAME @TIME ms, TIME ms clock, N bytes, N allocs
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "init "), " @")
		if !ok || !strings.HasPrefix(name, "github.com/busdk/") || strings.HasPrefix(name, "github.com/busdk/bus-agent/cmd/") {
			continue
		}
		seen++
		var at, clock float64
		var bytes int
		if _, err := fmt.Sscanf(rest, "%f ms, %f ms clock, %d bytes", &at, &clock, &bytes); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if bytes > most {
			t.Errorf("%s allocates %d bytes before main, at most %d are allowed", name, bytes, most)
		}
	}
	if seen == 0 {
		t.Errorf("no package of ours in\n%s", out)
	}
}
