package tree

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// makeReadable gives the user all rights to a directory, which is not a link, by
// its descriptor: the name could be that of something else by then.
func makeReadable(at int, name string) error {
	fd, err := openAt(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
}
