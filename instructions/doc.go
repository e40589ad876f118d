// Package instructions finds the AGENTS.md files that apply to a directory and
// gives runtimes the means to deliver them without ever touching what is not
// ours.
//
// [Discover] collects the files from the repository root down to the workdir,
// closest last. A [Workspace] is the only way to write: everything goes through
// os.Root, so no symlink leads out of the workdir; existing bytes are never
// changed; what was added can be found and removed again; and in a dry run it
// only notes what would be written.
package instructions
