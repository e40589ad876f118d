// Package containers is the protocol of runs in containers over Bus Events, and a small
// container integration for tests and for use on one machine.
//
// # Protocol
//
// A client publishes [NameRunRequest] with a [RunRequest] and a new correlation ID. The
// integration answers with [NameRunResponse], a [RunResponse] and the same correlation
// ID; a request that cannot be run is answered with the error of the envelope.
// [NameDeleteRequest] with a [DeleteRequest] ends a run, whose own response then has
// State StateDeleted; it is answered with [NameDeleteResponse].
//
// The fields of the HTTP API of containers have its names. The others are extensions of
// this module:
//
//	run_id   in a request: the client names the run, so that it can delete it at any
//	         time, and a request that is delivered twice runs once
//	workdir  the folder in the container in which the command starts
//	mounts   folders of the host in the container: source, target, read_only
//	env      names of variables that the integration passes on from its own
//	         environment, which keeps their values out of the log of events; it
//	         masks secrets among them in the output
//	labels   for the list of the containers
//	state    in a response: completed, failed, timeout or deleted
//
// A run that ends with its integration, or still waits then, is answered with the error
// code [CodeInterrupted], and one for which too many others wait with [CodeBusy].
// After a crash, the next integration on the machine does this, with the run ID as the
// correlation ID.
//
// # Engines
//
// [Detect] returns [CLI], which runs containers with docker or podman, if one of them
// has an engine that answers. [Process] runs the command as a process of this
// machine. It is for tests, and does not protect against hostile commands.
package containers
