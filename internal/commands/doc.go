// Package commands is the command line of bus-agent: a thin layer that turns
// arguments into calls of the library and results into text, JSON and an exit
// code.
//
// It owns no process state. Everything it reads and writes comes in an [Env],
// so that tests and programs with other runtimes run it like any function:
//
//	os.Exit(commands.Main(ctx, &commands.Env{Args: os.Args[1:], …}))
//
// Results go to standard output (or the file of --output), everything else to
// standard error with the prefix "bus-agent: ".
package commands
