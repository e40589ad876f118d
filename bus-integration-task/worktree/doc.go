// Package worktree keeps the work of a task in an isolated Git worktree, and moves the
// result to the primary checkout. It never executes repository content.
//
// [Repository.Add] checks out a worktree on a branch. A task changes files in it, whatever
// else it does. [Worktree.Changes] and [Worktree.Diff] report these changes,
// [Worktree.Commit] commits them, [Repository.Promote] moves the branch of the primary
// checkout forward, and [Worktree.Remove] cleans up.
//
// # What git reads
//
// The package runs one git executable, found on an absolute entry of PATH outside the
// workspace, without a shell, in a separate process group and with an environment made
// from scratch. For each operation it makes a private git directory, in which objects,
// references and their logs are links into the repository and everything else is its own:
// configuration, hooks, attributes, index and HEAD. So git reads neither the configuration
// of the repository or of the user nor the .git of the worktree, whatever a task has left
// there, and there is no list of dangerous variables that could be incomplete. Commands
// that start others (git add and git status do so in submodules) are not used. Attributes
// of a .gitattributes have no effect beyond git's built-in conversions, as no driver is
// configured: files for a filter such as that of git-lfs are checked out and committed as
// they are stored.
//
// # A task's own commits
//
// The bridge commits the files of the worktree: each [Worktree.Commit] is one commit on
// top of the last one by the bridge, or of the base. Commits that a task makes itself are
// not kept as commits, so their content is in the commit of the bridge and their messages
// are not. [Changes] reports that HEAD has moved. A task that breaks .git, HEAD or the
// index has no effect on this; Commit restores them.
//
// # Many tasks at once
//
// Promotions wait for each other. A task whose base branch was moved meanwhile is refused,
// with its branch kept, since what was tested is not what would land. [Worktree.Promote]
// can rebase it, which its result and the commit report.
//
// # Full disks and loss of power
//
// New objects are made in a private folder and moved to the repository when they are
// complete, so a failed operation leaves no part of one. An operation that finds no space
// changes no branch, and no index or file of the primary checkout; it can be repeated.
// Objects and branches are stored with fsync before an operation succeeds. So a promoted
// commit survives a loss of power. The last files of a checkout may not; git checkout
// restores them.
//
// # Versions
//
// Tested with git 2.39.5. Older versions than 2.38 are not supported.
package worktree
