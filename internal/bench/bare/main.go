// Command bare does nothing: the limit that the start of bus-agent is measured
// against.
package main

func main() {}
