// Package jsonline reads one line of JSON once, from left to right, and copies
// or unescapes only what is asked for. It is what the decoders of the
// runtimes are made of: a line of an agent can be megabytes of which an event
// needs a few words.
//
// A [Reader] goes through an object member by member. A value is taken by the
// method of its type; one that is not taken is skipped:
//
//	r := jsonline.New(line)
//	for m := r.Object(); m.Next(); {
//		switch string(m.Name()) {
//		case "type":
//			kind = r.String()
//		case "output":
//			output = r.Text()
//		}
//	}
//	if !r.End() {
//		// not a line of JSON, or not of these types
//	}
//
// # What is accepted
//
// Exactly what encoding/json accepts: all of the line is checked, also what is
// skipped, up to a depth of 10,000. Bytes that are not UTF-8 and lone surrogates
// become U+FFFD. Names are compared as they are, upper and lower
// case are different. Of members with the same name the reader sees all, so an
// assignment keeps the last. Null is every type's zero value.
package jsonline
