package process

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// now returns a horizon without a PID. Start times are microseconds of the wall
// clock, which may be set; a second of slack lets small corrections pass.
func now() horizon {
	at := time.Now()
	return horizon{born: uint64(at.Add(-time.Second).UnixMicro()), at: at}
}

// readTable returns the processes born since h.
func readTable(h horizon, _ marks) ([]process, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	var table []process
	for i := range all {
		p := fromKernel(&all[i])
		if p.born < h.born {
			continue
		}
		if !p.dead {
			p.tag = findTag(environment(p.pid))
		}
		table = append(table, p)
	}
	return table, nil
}

var errNoProcess = errors.New("no such process")

// readProcess reads what a table holds of a process, but its tag.
func readProcess(pid int) (process, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return process{}, err
	}
	if int(info.Proc.P_pid) != pid {
		return process{}, errNoProcess
	}
	return fromKernel(info), nil
}

func fromKernel(info *unix.KinfoProc) process {
	start := info.Proc.P_starttime
	p := process{
		pid:    int(info.Proc.P_pid),
		parent: int(info.Eproc.Ppid),
		born:   uint64(start.Sec)*1e6 + uint64(start.Usec),
		dead:   info.Proc.P_stat == zombie,
	}
	if session, err := unix.Getsid(p.pid); err == nil {
		p.session = session
	}
	return p
}

// environment returns the arguments and the environment a process was started
// with, as NUL-terminated strings; nothing when it may not be read.
func environment(pid int) []byte {
	args, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(args) < 4 {
		return nil
	}
	return args[4:] // behind the number of arguments
}
