// Package appserver speaks the protocol of the Codex App Server: JSON-RPC 2.0
// without its "jsonrpc" member, one message a line, over a transport that the
// caller provides.
//
// [Client] is the protocol: the handshake, threads, turns, steering, interrupting
// and the server's approval requests. [Engine] is an engine.Engine on top of it,
// for package session and runtimes with such a server.
//
// Facts were observed by running `codex app-server` of codex 0.169.0. Replies of
// older servers, with threadId and turnId in place of thread.id and turn.id, are
// understood too.
package appserver
