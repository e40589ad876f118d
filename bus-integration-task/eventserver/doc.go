// Package eventserver is the Bus Events HTTP API over NATS JetStream: embedded with a file
// store, in a cluster of such servers, or on an existing NATS server. Package events is a
// client of it.
//
// # API
//
// Every request has "Authorization: Bearer" with a JSON Web Token that is signed with
// HS256, is for the configured audience, has a subject and an expiry, and lists its scopes
// in the claim "scope", separated by spaces. Clocks may differ by five seconds. The
// subject is the identity: it owns what it publishes, and streams show it nothing else.
//
//	POST /api/v1/events           publishes an event: name, correlationId, source, metadata, payload, error
//	POST /api/v1/events/append    the same, if last_id is the latest event of the task; "" for none
//	GET  /api/v1/events/stream    application/x-ndjson, one event a line; blank lines are heartbeats
//
//	  name       of the events; repeated for several, whose order is kept; no wildcards
//	  delivery   broadcast (default): each stream gets every event; unicast: one of a group does
//	  group      of a unicast stream; "default" if missing
//	  consumer   name of the client in the group, for its own use
//	  replay     true: begin with the oldest event; false (default): with the next one
//	  after_id   begin after this event
//	  follow     false: end after the events that are in the log; true (default): continue
//	  work_ref   only events of this task
//	  control    true: send control lines too; see events.Control
//
// An event is accepted with 202 and {"accepted":true,"id":"evt_...","name":"..."} once
// JetStream has stored it; in a cluster, on a majority of the servers. IDs ascend in the
// order of the log. The task of an event is work_ref of its payload, for names that begin
// with bus.task.; all others belong to no task. The server sets the time and the metadata
// identity_id, whatever the client sent; source is what the client calls itself.
//
// An error is {"error":{"type","message","action"}}:
//
//	400 bad_request        malformed, or beyond the end of the log, or a group too many
//	401 invalid_auth       token missing, invalid or expired; a stream ends when its token expires
//	403 forbidden          a scope is missing
//	404 not_found          no such path
//	408 timeout            the event was sent too slowly; nothing was stored
//	409 conflict           last_id is not the latest event; last_id of the answer is, if known
//	413 too_large          more than 4 MiB of payload or 60 KiB of everything else
//	429 too_many_streams   of this identity
//	503 storage_full       nothing was stored
//	503 unavailable        of a publish: the event may have been stored
//
// A stream with follow=false has every event that was accepted before it began, and none
// that was accepted later. While the store cannot serve a stream, the stream waits for a
// limited time, and then ends with 503. Only a server that has been cut off from the
// majority of its cluster can serve an older log, for about twenty seconds.
//
// # Scopes
//
// Every publish needs events:send, and every stream events:listen. Besides:
//
//	bus.task.* stream                                   task:read
//	created approved assigned reopened
//	approval.answered                                   task:send
//	canceled message                                    task:send or task:reply
//	claimed                                             task:claim
//	progress released approval.requested
//	done blocked failed closed                          task:reply
//	any other bus.task.*                                task:admin
//	bus.containers.* stream                             container:read or container:run
//	bus.containers.status.*                             container:read
//	bus.containers.delete.*                             container:delete
//	bus.containers.runner.*                             container:admin
//	any other bus.containers.*                          container:run
//
// task:admin stands for all of task:*, and container:admin for all of container:*.
//
// # Unicast
//
// A group of an identity has a position for each event name, which lasts. replay decides
// where a new group begins: at the oldest event, or at the next one. An event goes to one
// of the open streams of the group, and each stream has one event at a time. It is
// acknowledged when the connection has taken it, and given to another stream if the
// connection fails first, or if the server ends and the time for redelivery passes. So an
// event can be delivered twice, to two clients; and one is lost to a client that fails
// between the delivery and its work. Clients that must not miss an event read a broadcast
// stream from their last ID. Events have no particular order in a group.
//
// # Limits
//
// A stream holds at most about nine megabytes for a client that does not read, and ends
// when a write takes longer than the timeout. Streams and groups of an identity, events
// that are being published, and all text are limited. Nothing is ever removed from the log: when
// its limit or the disk is reached, events are refused.
package eventserver
