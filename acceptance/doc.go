// Package acceptance tests bus-agent with the real agent CLIs. Its tests have the
// build tag "acceptance"; `make acceptance` installs the CLIs and runs them. The CLIs
// use scripted model servers on loopback, so the tests can check the requests that
// the model receives.
//
// Each test has a separate home, temporary folder and environment. After each run it
// checks that the home is unchanged, except for files that the CLI keeps there, that
// no files remain in the temporary folder and the repository, and that no process is
// still running.
//
// The functions testXxx contain the tests that several CLIs share.
package acceptance
