//go:build !linux

package process

import "errors"

// BecomeSubreaper returns errors.ErrUnsupported: only Linux can make a process
// the parent of descendants that lose theirs.
func BecomeSubreaper(alone bool) error { return errors.ErrUnsupported }

func (r *run) adopted() bool { return false }

func (r *run) killAdopted(*hunt) {}

func killLeft() int { return 0 }
