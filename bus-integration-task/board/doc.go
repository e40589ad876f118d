// Package board serves a local page that shows the tasks of an event log while they are
// worked on: queues, workers, running turns with their latest messages, approval requests
// and results with their diffs. Approval requests are answered on the page, and tasks are
// messaged, canceled and reopened.
//
// The server listens on a loopback address only. Every path begins with a random token,
// so only who has the address can read or act. Events reach the page as server-sent
// events, and the page shows what they hold as text only.
package board
