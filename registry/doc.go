// Package registry holds the descriptions of agent runtimes and the tables of
// them.
//
// A [Runtime] is a struct of facts and behaviour. A package that brings one
// exports it as a function Runtime() and registers it in init:
//
//	func init() { registry.Register(Runtime()) }
//
// so that a blank import is enough to add it to a program, while
//
//	var r registry.Registry
//	err := r.Register(codex.Runtime())
//
// works with no global at all.
package registry
