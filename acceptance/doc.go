// Package acceptance proves bus-agent with the real agent CLIs. Its tests have
// the build tag "acceptance"; `make acceptance` installs the CLIs and runs
// them. The CLIs talk to scripted model servers on loopback, so what the tests
// assert is what the model was really sent.
//
// Each run has a home, a temporary folder and an environment of its own, and
// after each run the same is checked: the home is unchanged but for what the CLI
// keeps there on purpose, nothing is left in the temporary folder or in the
// repository, and no process lives on.
//
// The prove functions hold the rules that are the same for several CLIs; what a
// test of one CLI says beside them is how that CLI differs.
package acceptance
