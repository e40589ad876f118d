package runs

import (
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v4"
)

// infoName is the file of an [Info].
const infoName = "run-info.yaml"

// infoLockTime is how long somebody else may hold the lock of an Info.
const infoLockTime = 5 * time.Second

// marshalInfo returns an Info in the form of the Agent Protocol's own writer, in
// which no line is broken.
func marshalInfo(info *Info) ([]byte, error) {
	return yaml.Dump(info, yaml.WithV3Defaults(), yaml.WithLineWidth(-1))
}

// updateInfo writes the Info of the run in dir, under its lock.
func updateInfo(dir string, info *Info) error {
	l, err := lockAt(filepath.Join(dir, infoName+".lock"), infoLockTime)
	if err != nil {
		return err
	}
	defer l.remove()
	return writeInfo(dir, info)
}

// writeInfo writes it whole or not at all.
func writeInfo(dir string, info *Info) error {
	text, err := marshalInfo(info)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "run-info.*.yaml.tmp") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, infoName))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
