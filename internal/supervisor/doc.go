// Package supervisor keeps a session alive after the command that started it has
// ended: one process a session holds the session.Session, writes down what
// happens, and serves other commands over a Unix socket. There is no daemon.
//
// # Folder
//
// A session has a folder of its own in the state folder, readable by the user
// alone:
//
//	entry.json       what is known of the session: an [Entry]
//	lock             locked by the supervisor while it lives
//	log              what the supervisor and the agent's standard error say
//	events.N.ndjson  what happened, a [Record] a line; the latest 8 MiB are kept, and up to 16
//	socket           where the supervisor listens
//
// Beside the folders, package sessions has an entry of each session, by which other
// programs know it: [Entry.CanonicalID] is its ID there. What the supervisor warns of
// is in the log and among what happened.
//
// A socket whose name would be too long for the system stands in a folder of the
// user's in /tmp instead.
//
// # Protocol
//
// Either side hangs up on a process of another user. A client connects, writes one
// [Call] and reads lines of [Reply] until one that is the last, all as one JSON
// object a line. Each has the version of the protocol in "v"; a supervisor refuses
// calls of another one. The calls are:
//
//	show       Status
//	send       queues Text for a turn; with Wait, the records of the turn and its Result
//	steer      adds Text to the running turn, or makes it the next one; Turn and Steered tell
//	interrupt  ends the running turn
//	answer     gives Decision for the question Approval; empty is the only one that is open
//	watch      the Last records (-1: all), with Follow also those to come, until the
//	           state Until is reached, where given
//	stop       ends the session for Reason; the answer comes when nothing of the agent
//	           is left, shortly before the supervisor ends
//
// A client that goes away ends nothing but its connection: what it has sent is
// answered all the same.
//
// Records are read from the files, so a client that is slow holds no memory and
// stops nobody. One that is so slow that a file is removed before it was read is
// told how many records it has missed.
package supervisor
