package process

import "os"

// maxAncestors bounds how many processes above this one are read.
const maxAncestors = 64

// AncestorValues returns the values that a variable has in the environments with which
// the processes above this one were started, the parent first. It leaves out processes
// that the system does not show, such as those of other users. An ancestor that has
// ended is not an ancestor anymore.
func AncestorValues(name string) []string {
	var values []string
	pid := os.Getppid()
	for range maxAncestors {
		if pid <= 1 {
			break
		}
		values = append(values, valuesOf(environment(pid), name)...)
		p, err := readProcess(pid)
		if err != nil {
			break
		}
		pid = p.parent
	}
	return values
}
