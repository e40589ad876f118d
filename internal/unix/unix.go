//go:build unix

// Package unix is what this project uses of golang.org/x/sys/unix, so that programs that
// import the project compile on every system. Where those calls do not exist, they return
// an error; package process refuses to start anything there.
package unix

import (
	"syscall"

	"golang.org/x/sys/unix"
)

type (
	FdSet      = unix.FdSet
	PollFd     = unix.PollFd
	Rlimit     = unix.Rlimit
	Signal     = syscall.Signal
	Stat_t     = unix.Stat_t
	SysStat    = syscall.Stat_t // what os.FileInfo.Sys returns
	Timeval    = unix.Timeval
	WaitStatus = unix.WaitStatus
)

const (
	AT_FDCWD            = unix.AT_FDCWD
	AT_REMOVEDIR        = unix.AT_REMOVEDIR
	AT_SYMLINK_NOFOLLOW = unix.AT_SYMLINK_NOFOLLOW
	F_DUPFD_CLOEXEC     = unix.F_DUPFD_CLOEXEC
	LOCK_EX             = unix.LOCK_EX
	LOCK_NB             = unix.LOCK_NB
	LOCK_SH             = unix.LOCK_SH
	LOCK_UN             = unix.LOCK_UN
	O_APPEND            = unix.O_APPEND
	O_CLOEXEC           = unix.O_CLOEXEC
	O_CREAT             = unix.O_CREAT
	O_DIRECTORY         = unix.O_DIRECTORY
	O_EXCL              = unix.O_EXCL
	O_NOCTTY            = unix.O_NOCTTY
	O_NOFOLLOW          = unix.O_NOFOLLOW
	O_NONBLOCK          = unix.O_NONBLOCK
	O_RDONLY            = unix.O_RDONLY
	O_RDWR              = unix.O_RDWR
	O_WRONLY            = unix.O_WRONLY
	POLLIN              = unix.POLLIN
	RLIMIT_NOFILE       = unix.RLIMIT_NOFILE
	S_IFDIR             = unix.S_IFDIR
	S_IFIFO             = unix.S_IFIFO
	S_IFLNK             = unix.S_IFLNK
	S_IFMT              = unix.S_IFMT
	S_IFREG             = unix.S_IFREG
	S_IFSOCK            = unix.S_IFSOCK
	WNOHANG             = unix.WNOHANG
	W_OK                = unix.W_OK
	X_OK                = unix.X_OK
)

const (
	EACCES       = unix.EACCES
	EAGAIN       = unix.EAGAIN
	ECONNREFUSED = unix.ECONNREFUSED
	EEXIST       = unix.EEXIST
	EINTR        = unix.EINTR
	EINVAL       = unix.EINVAL
	EISDIR       = unix.EISDIR
	ELOOP        = unix.ELOOP
	ENAMETOOLONG = unix.ENAMETOOLONG
	ENOENT       = unix.ENOENT
	ENOTDIR      = unix.ENOTDIR
	ENOTEMPTY    = unix.ENOTEMPTY
	ENOTSOCK     = unix.ENOTSOCK
	ENOTSUP      = unix.ENOTSUP
	EPERM        = unix.EPERM
	ESRCH        = unix.ESRCH
	EWOULDBLOCK  = unix.EWOULDBLOCK
)

const (
	SIGCHLD = unix.SIGCHLD
	SIGCONT = unix.SIGCONT
	SIGKILL = unix.SIGKILL
	SIGSTOP = unix.SIGSTOP
	SIGTERM = unix.SIGTERM
	SIGTSTP = unix.SIGTSTP
)

func Access(path string, mode uint32) error { return unix.Access(path, mode) }
func Close(fd int) error                    { return unix.Close(fd) }
func Fchmod(fd int, mode uint32) error      { return unix.Fchmod(fd, mode) }
func Fchmodat(dir int, path string, mode uint32, flags int) error {
	return unix.Fchmodat(dir, path, mode, flags)
}
func FcntlInt(fd uintptr, command, arg int) (int, error) { return unix.FcntlInt(fd, command, arg) }
func Flock(fd, how int) error                            { return unix.Flock(fd, how) }
func Fstat(fd int, stat *Stat_t) error                   { return unix.Fstat(fd, stat) }
func Fstatat(dir int, path string, stat *Stat_t, flags int) error {
	return unix.Fstatat(dir, path, stat, flags)
}
func Getpgid(pid int) (int, error)                { return unix.Getpgid(pid) }
func Getpgrp() int                                { return unix.Getpgrp() }
func Getrlimit(resource int, limit *Rlimit) error { return unix.Getrlimit(resource, limit) }
func Getsid(pid int) (int, error)                 { return unix.Getsid(pid) }
func Kill(pid int, signal Signal) error           { return unix.Kill(pid, signal) }
func Linkat(from int, path string, to int, name string, flags int) error {
	return unix.Linkat(from, path, to, name, flags)
}
func Lstat(path string, stat *Stat_t) error                 { return unix.Lstat(path, stat) }
func Mkdirat(dir int, path string, mode uint32) error       { return unix.Mkdirat(dir, path, mode) }
func Mkfifo(path string, mode uint32) error                 { return unix.Mkfifo(path, mode) }
func Mknod(path string, mode uint32) error                  { return unix.Mknod(path, mode, 0) }
func Open(path string, flags int, mode uint32) (int, error) { return unix.Open(path, flags, mode) }
func Openat(dir int, path string, flags int, mode uint32) (int, error) {
	return unix.Openat(dir, path, flags, mode)
}
func Poll(files []PollFd, timeout int) (int, error)     { return unix.Poll(files, timeout) }
func Pread(fd int, p []byte, offset int64) (int, error) { return unix.Pread(fd, p, offset) }
func Read(fd int, p []byte) (int, error)                { return unix.Read(fd, p) }
func Renameat(from int, path string, to int, name string) error {
	return unix.Renameat(from, path, to, name)
}
func Select(n int, read, write, except *FdSet, timeout *Timeval) (int, error) {
	return unix.Select(n, read, write, except, timeout)
}
func SignalName(signal Signal) string                { return unix.SignalName(signal) }
func SignalNum(name string) Signal                   { return unix.SignalNum(name) }
func Stat(path string, stat *Stat_t) error           { return unix.Stat(path, stat) }
func Unlinkat(dir int, path string, flags int) error { return unix.Unlinkat(dir, path, flags) }
func Wait4(pid int, status *WaitStatus, options int) (int, error) {
	return unix.Wait4(pid, status, options, nil)
}
func Write(fd int, p []byte) (int, error) { return unix.Write(fd, p) }

// StartSession starts a program in a new session.
func StartSession(path string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	attr.Sys = NewSession()
	return syscall.ForkExec(path, args, attr)
}

// NewSession returns the attributes of a process in a new session.
func NewSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
