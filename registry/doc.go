// Package registry describes agent runtimes and keeps tables of them.
//
// A [Runtime] is a struct of facts and functions. A package that defines one
// exports a function Runtime that returns it, and registers it in init:
//
//	func init() { registry.Register(Runtime()) }
//
// so that a blank import is enough to add it to a program, while
//
//	var r registry.Registry
//	err := r.Register(codex.Runtime())
//
// uses no global variable.
package registry
