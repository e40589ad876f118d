// Package instructions finds the AGENTS.md files that apply to a directory and lets
// runtimes deliver them without changing the user's files.
//
// [Discover] collects the files from the repository root down to the workdir, closest
// last. A [Workspace] is the only way to write: it goes through os.Root, so no symlink
// leads out of the workdir; it never changes existing bytes; everything it adds can be
// found and removed again; and in a dry run it only lists what it would write.
package instructions
