// Package process starts agents, passes on what they write, and ends them and
// everything that they have started.
//
// It is for packages of this module that run a program of the user's choice:
// [Run] for a whole run, [Start] for a run that is watched meanwhile. It knows nothing
// about agents.
//
// # Start
//
// No shell is involved: the executable is an absolute path, and arguments and
// environment are passed as they are. The process starts in a new session, and so in a
// new process group and without a terminal on which it could wait for an answer.
// Standard input is written whole and closed, whether the process reads it or not;
// without input it is the null device. Further contents are open as the descriptors
// 3, 4, … and have no name on disk; on Linux /dev/fd/3 can be read again from its
// start, on macOS all readers share one position.
//
// All processes are started by one thread that never ends, because on Linux the kernel
// sends them SIGTERM when the thread that started them ends. So a process that reacts
// to SIGTERM does not outlive a program that panics or is killed. To end descendants
// as well, and on macOS to end anything, a program cancels its context when it
// receives a signal.
//
// # Output
//
// One goroutine a stream reads and calls the writer. A slow writer slows the
// process, memory is bounded by one buffer of 64 KiB a stream, and nothing is
// dropped. After a writer has failed the process is stopped, and its stream is
// read on into nothing so that it can end in order.
//
// # End
//
// A run is over when its process has exited. The process is not reaped yet, so that
// its process, group and session number cannot pass to another. First the rest of the
// run is killed, then the contents of the pipes are read, without waiting for more,
// then the process is reaped. So a background child that holds the output open does
// not delay the end, even if it cannot be killed.
//
// A run is stopped when the context ends, [Process.Stop] is called or a writer
// fails: its descendants are recorded, its group gets SIGTERM, and if it has not
// exited after the grace, SIGKILL. Then its descendants may end by themselves for
// the time to settle, as tools do that clean up when their parent is gone. Both
// times end early when there is nothing to wait for. What is left is killed. A
// process that is alive five seconds after its first SIGKILL is counted in
// Exit.Survived and left alone.
//
// # What belongs to a run
//
// A process is a member of a run if it was born after the start of the run and
//
//   - its parent is a member or the started process, or
//   - its session is that of the started process or of a member, which covers
//     process groups, as a group cannot span sessions, or
//   - it claims to be one and is an orphan of the run, or
//   - it was seen to be a member before, by PID and start time.
//
// Parents and sessions are written by the kernel alone. A claim is what a process
// can copy: the entry of the run in its tag or, without a tag, the mark of the run
// or of a run within it whose owner is or was a member. A claim counts only if the
// process has the parent that an orphan of the run gets, which is this program if
// it is a subreaper and one of its ancestors otherwise, and if the leader of its
// session has ended or is a member. So a mark or a tag that one run copies from
// another never makes the runs of others members.
//
// The tag is the variable BUS_AGENT_RUN: a comma-separated list, outermost run
// first, of entries that hold the boot, the PID namespace, PID and start time of
// the program that runs the agent, and a random number. Entries are compared
// whole. A run within a run has both entries, so the outer one finds what the
// inner one started.
//
// The mark exists on Linux: a number of 50 bits as the soft limit of
// RLIMIT_LOCKS, which the kernel inherits and otherwise ignores. It has the PID
// and PID namespace of the program that runs the agent and a number of the run. It stays on a
// process that becomes a daemon and clears its environment, and on a zombie. It
// is set right after exec, together with what the process has started by then; a
// process that clears its environment and becomes a daemon before that escapes.
// So does one that sets this limit itself, or changes its user. Where the hard
// limit is too low, and in a sandbox that forbids the call, a run has no mark.
//
// Reading the process table includes the processes that are born meanwhile, so that a
// process that forks and exits without end is not missed. A member is signalled through
// a descriptor, and only if its start time, read while the descriptor is held, is that
// of the member.
// Zombies do not count as alive.
//
// Runs that end at the same time share a scan. A run of less than 50 ms looks
// only at PIDs given out since its start, which takes microseconds; a longer one
// reads the start time of every process, about 8 µs each.
//
// # Subreaper
//
// Orphans of a run are adopted by init. A main program that has called
// [BecomeSubreaper] adopts and reaps them itself, also during the run. Parent and time
// do not show whether a child was adopted from a run, was started by another part of
// the program that waits for it, or was adopted from such a child. So the mark decides:
// a zombie is reaped only if it has the mark of a run or is otherwise a member of one,
// and is not the started process of any run. A main program can declare that it starts
// only runs; then, with one run, an orphan without a mark is a member too.
//
// # Headroom
//
// On Linux the started process gets a limit on processes a reserve below what limits
// this program, soft and hard, and hands it down: RLIMIT_NPROC, which counts the
// processes and threads of the user. An agent that forks without end is refused more
// while this program can start threads. It is set with the mark and does not hold for
// the superuser. Processes that fork faster than they can be killed are stopped first,
// so that they still count until none of them can fork.
//
// # Stale processes
//
// A program that is killed, or that panics in another goroutine, does not sweep. On
// Linux its agents get SIGTERM then; what ignores it, or does not get it, keeps
// running. [StaleProcesses] finds it: processes of this user
//
//   - that claim to be of dead owners: all that the tag names are of this boot and
//     PID namespace and dead or, without a tag, the mark names one that is dead and
//     whose run was not within another one,
//   - and have the parent that an orphan of such an owner gets: init, a child of
//     init or one that is older than the owner, but not a live owner; the leader of
//     their session has ended or is stale,
//   - and, born after that owner, what is a child of such a process or in its
//     session.
//
// An owner is dead when no process has its PID and start time. What has the tag or
// the mark of a live owner is left to it, and so is what has a tag of another boot
// or namespace. This process, its ancestors and what shares a run with it are never
// stale processes. [EndStaleProcesses] signals them as members of a run are signalled.
//
// A program claims the folders of its runs with a file in them on which it holds a
// lock, see [ClaimFolder]. The kernel drops the lock with the process. [StaleClaim]
// decides by the lock, boot, namespace, PID and start time, never by age, whether a
// folder is still in use.
//
// # Limits
//
// Where /proc is missing or shows another PID namespace, only the group of the
// started process is ended and the descendants that left it are not known.
// Processes of another user are ended only if the system lets us signal them,
// and count as survivors otherwise.
//
// What cleared its environment and set its own limits, or did so before it got a
// mark, and is orphaned, is out of reach of all but a subreaper as above. So
// is, after the owner was killed, what did so within a nested run: its mark does
// not say whether the outer owner lives.
//
// A claim of an orphan cannot be checked further. A daemon of this user without a
// tag, an orphan like those of the run and born after its start, counts as a member
// once an agent has put the mark of its run on it. A subreaper is not misled: what
// it adopts belongs to its runs.
//
// macOS has no mark, no subreaper and no signal at the end of the parent: agents
// outlive an owner that is killed, until [EndStaleProcesses] is called. A daemon
// that clears its environment before the first look is lost there, and so is one
// whose environment the system does not show, as it does with its own programs.
// A few microseconds pass between the check of a process and the signal to it. Start
// times follow the wall clock: if that is set back by more than a second during a run,
// only the group is certain to be ended.
//
// The package does not build on Windows, which has no process groups, no signals, and
// no way to read the environment of a process.
package process
