//go:build !linux

package process

// Other systems have nothing that a process hands down and would not lose by
// accident.

func newMark(bool) uint64          { return 0 }
func setMark(int, uint64) bool     { return false }
func ownMark() uint64              { return 0 }
func markOwner(uint64) (int, bool) { return 0, false }
func markedBy(uint64) (int, bool)  { return 0, false }

func (r *run) markEarly() {}

func chase(func(uint64) bool, func(process) bool) {}
