package process

import "errors"

// BecomeSubreaper returns errors.ErrUnsupported: only Linux can make a process
// the parent of descendants that lose theirs.
func BecomeSubreaper() error { return errors.ErrUnsupported }
