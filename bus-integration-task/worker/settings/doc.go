// Package settings reads the settings of the task worker.
//
// Each setting comes from the first of: its flag, its environment variables in their
// order, its field in the policy file, the built-in default. One table describes all of
// them; flags, variables, policy fields, precedence and documentation follow from it. A
// blank variable counts as not set.
//
// Errors are one line that names the flag, the variable or the policy field, and are of
// kind agent.ErrUsage, for which a program exits with 2.
//
// The package also maps recipients to repositories, expands placeholders and reads
// deployment secrets. It starts nothing and writes nothing.
package settings
