// Package statefile reads, writes and locks state files in folders where others can
// write too: an agent, another program, another version of this program.
//
// A folder is opened once and held ([Dir]); all work on its files is relative to
// the descriptor, one name at a time. If something else takes the place of the folder
// later, it is not touched. A link is never followed, a named pipe or device never waited
// for, a sparse file never read to its end, a lock never waited for longer than
// [LockWait] or its context. An error names the file and what has taken its place.
package statefile
