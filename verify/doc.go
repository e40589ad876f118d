// Package verify checks an installed agent CLI against the promises that bus-agent makes
// of its runtime: the prompt arrives whole, AGENTS.md arrives once, read access holds, a
// refused login is reported as one, a hostile repository runs nothing, and so on. [Checks]
// lists them.
//
// Each check runs the CLI through package runner in a throwaway home and workdir,
// against a scripted model server on loopback (package modeltest). It needs no account,
// key or network, and uses only PATH of the user's environment.
//
// If a runtime has sessions only, a session with one turn takes the place of each run.
//
// A [Target] describes how to point one CLI at the server. Package verify/targets has
// those of bus-agent. Authors of other runtimes write one and call [Run] from a test or
// from a command:
//
//	report, err := verify.Run(ctx, target, verify.Options{})
//	if err != nil {
//		t.Fatal(err) // the CLI is not installed, or the target is invalid
//	}
//	for _, r := range report.Broken() {
//		t.Errorf("%s: %s", r.Check, r.Detail)
//	}
//
// All checks of a CLI take about a minute on two cores, and longer on a busy machine.
package verify
