// Package events is a client of the Bus Events HTTP API: it publishes events and follows
// streams of them. It knows envelopes, not what their payloads mean.
//
// A [Client] publishes with [Client.Publish], and on a condition with [Client.Append].
// [Client.Stream] calls a function with each event of a [Query]. It reconnects, and
// continues after the last event it has delivered, so a broadcast stream loses and
// repeats nothing. [ResolveToken] finds the token.
//
// # Errors
//
// Every error of a call has one of the kinds [ErrInvalid], [ErrUnauthorized],
// [ErrForbidden], [ErrConflict] and [ErrUnavailable] for [errors.Is], or is the error of
// the context or of a function of the caller. No error contains the token.
//
// # Security
//
// The token is sent only to the URL of the client: redirects are not followed, and http
// is refused for hosts other than the loopback.
package events
