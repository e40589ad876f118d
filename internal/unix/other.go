//go:build !unix

package unix

import (
	"errors"
	"syscall"
)

type (
	Signal     = syscall.Signal
	WaitStatus = syscall.WaitStatus
)

type (
	FdSet  struct{}
	PollFd struct {
		Fd              int32
		Events, Revents int16
	}
	Rlimit  struct{ Cur, Max uint64 }
	SysStat = Stat_t
	Stat_t  struct {
		Dev, Ino, Nlink uint64
		Size, Blocks    int64
		Mode, Uid, Gid  uint32
	}
	Timeval struct{ Sec, Usec int64 }
)

func (*FdSet) Set(int) {}

const (
	AT_FDCWD            = 0
	AT_REMOVEDIR        = 0
	AT_SYMLINK_NOFOLLOW = 0
	F_DUPFD_CLOEXEC     = 0
	LOCK_EX             = 2
	LOCK_NB             = 4
	LOCK_SH             = 1
	LOCK_UN             = 8
	O_APPEND            = syscall.O_APPEND
	O_CLOEXEC           = syscall.O_CLOEXEC
	O_CREAT             = syscall.O_CREAT
	O_DIRECTORY         = 0
	O_EXCL              = syscall.O_EXCL
	O_NOCTTY            = 0
	O_NOFOLLOW          = 0
	O_NONBLOCK          = syscall.O_NONBLOCK
	O_RDONLY            = syscall.O_RDONLY
	O_RDWR              = syscall.O_RDWR
	O_WRONLY            = syscall.O_WRONLY
	POLLIN              = 0
	RLIMIT_NOFILE       = 0
	S_IFDIR             = 0x4000
	S_IFIFO             = 0x1000
	S_IFLNK             = 0xa000
	S_IFMT              = 0xf000
	S_IFREG             = 0x8000
	S_IFSOCK            = 0xc000
	WNOHANG             = 0
	W_OK                = 0
	X_OK                = 0
)

const (
	EACCES       = syscall.EACCES
	EAGAIN       = syscall.EAGAIN
	ECONNREFUSED = syscall.ECONNREFUSED
	EEXIST       = syscall.EEXIST
	EINTR        = syscall.EINTR
	EINVAL       = syscall.EINVAL
	EISDIR       = syscall.EISDIR
	ELOOP        = syscall.ELOOP
	ENAMETOOLONG = syscall.ENAMETOOLONG
	ENOENT       = syscall.ENOENT
	ENOTDIR      = syscall.ENOTDIR
	ENOTEMPTY    = syscall.ENOTEMPTY
	ENOTSOCK     = syscall.ENOTSOCK
	ENOTSUP      = syscall.ENOTSUP
	EPERM        = syscall.EPERM
	ESRCH        = syscall.ESRCH
	EWOULDBLOCK  = syscall.EWOULDBLOCK
)

const (
	SIGCHLD = Signal(65)
	SIGCONT = Signal(66)
	SIGKILL = syscall.SIGKILL
	SIGSTOP = Signal(67)
	SIGTERM = syscall.SIGTERM
	SIGTSTP = Signal(68)
)

func Access(path string, mode uint32) error                       { return errors.ErrUnsupported }
func Close(fd int) error                                          { return errors.ErrUnsupported }
func Fchmod(fd int, mode uint32) error                            { return errors.ErrUnsupported }
func Fchmodat(dir int, path string, mode uint32, flags int) error { return errors.ErrUnsupported }
func FcntlInt(fd uintptr, command, arg int) (int, error)          { return 0, errors.ErrUnsupported }
func Flock(fd, how int) error                                     { return errors.ErrUnsupported }
func Fstat(fd int, stat *Stat_t) error                            { return errors.ErrUnsupported }
func Fstatat(dir int, path string, stat *Stat_t, flags int) error { return errors.ErrUnsupported }
func Getpgid(pid int) (int, error)                                { return 0, errors.ErrUnsupported }
func Getpgrp() int                                                { return 0 }
func Getrlimit(resource int, limit *Rlimit) error                 { return errors.ErrUnsupported }
func Getsid(pid int) (int, error)                                 { return 0, errors.ErrUnsupported }
func Kill(pid int, signal Signal) error                           { return errors.ErrUnsupported }
func Linkat(from int, path string, to int, name string, flags int) error {
	return errors.ErrUnsupported
}
func Lstat(path string, stat *Stat_t) error                 { return errors.ErrUnsupported }
func Mkdirat(dir int, path string, mode uint32) error       { return errors.ErrUnsupported }
func Mkfifo(path string, mode uint32) error                 { return errors.ErrUnsupported }
func Mknod(path string, mode uint32) error                  { return errors.ErrUnsupported }
func Open(path string, flags int, mode uint32) (int, error) { return 0, errors.ErrUnsupported }
func Openat(dir int, path string, flags int, mode uint32) (int, error) {
	return 0, errors.ErrUnsupported
}
func Poll(files []PollFd, timeout int) (int, error)             { return 0, errors.ErrUnsupported }
func Pread(fd int, p []byte, offset int64) (int, error)         { return 0, errors.ErrUnsupported }
func Read(fd int, p []byte) (int, error)                        { return 0, errors.ErrUnsupported }
func Renameat(from int, path string, to int, name string) error { return errors.ErrUnsupported }
func Select(n int, read, write, except *FdSet, timeout *Timeval) (int, error) {
	return 0, errors.ErrUnsupported
}
func SignalName(signal Signal) string                             { return signal.String() }
func SignalNum(name string) Signal                                { return 0 }
func Stat(path string, stat *Stat_t) error                        { return errors.ErrUnsupported }
func Unlinkat(dir int, path string, flags int) error              { return errors.ErrUnsupported }
func Wait4(pid int, status *WaitStatus, options int) (int, error) { return 0, errors.ErrUnsupported }
func Write(fd int, p []byte) (int, error)                         { return 0, errors.ErrUnsupported }
func StartSession(path string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	return 0, errors.ErrUnsupported
}
func NewSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
