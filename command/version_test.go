package command

import (
	"runtime/debug"
	"testing"
)

func TestBuildVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"v1.2.3": "v1.2.3", "(devel)": "", "": ""} {
		info := &debug.BuildInfo{Main: debug.Module{Version: version}}
		if got := buildVersion(info, true); got != want {
			t.Errorf("version %q of the build is shown as %q, want %q", version, got, want)
		}
	}
	if got := buildVersion(nil, false); got != "" {
		t.Errorf("unknown version is shown as %q", got)
	}
}
