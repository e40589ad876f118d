//go:build !linux

package all_test

import "errors"

func makeDevice(string) error { return errors.New("not tried on this system") }
