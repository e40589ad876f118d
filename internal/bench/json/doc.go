// Package json compares what can read a line of an agent: it decided what the
// decoders of the runtimes are made of. Its tests measure the candidates on
// recorded and made lines, and list the invalid JSON that each accepts.
//
// It is a separate module, so that no candidate becomes a dependency of the
// project:
//
//	go test -bench . ./...
//	go test -run Hostile -update ./... # rewrite testdata/hostile.md
package json
