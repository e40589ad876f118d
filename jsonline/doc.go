// Package jsonline reads one line of JSON once, from left to right, and copies
// or unescapes only what the caller requests. The decoders of the runtimes use
// it: an agent's line can have megabytes, of which an event needs a few words.
//
// A [Reader] goes through an object member by member. The method of a value's
// type takes the value; a value that is not taken is skipped:
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
// become U+FFFD. Names are compared as they are, upper and lower case are
// different. The reader reports every member of a repeated name, so an
// assignment keeps the last. Null is the zero value of every type.
package jsonline
