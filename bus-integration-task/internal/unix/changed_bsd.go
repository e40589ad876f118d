//go:build darwin || freebsd

package unix

import (
	"syscall"
	"time"
)

func changed(stat *syscall.Stat_t) time.Time { return time.Unix(stat.Ctimespec.Unix()) }
