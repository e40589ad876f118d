package testuser_test

import (
	"os"
	"testing"

	"github.com/busdk/bus-agent/internal/testuser"
)

func TestOrdinary(t *testing.T) {
	t.Parallel()
	if testuser.Ordinary(t) && (os.Getuid() == 0 || os.WriteFile("/etc/testuser", nil, 0o600) == nil) {
		t.Errorf("user %d may do everything", os.Getuid())
	}
}
