// Package backendtest tests runtimes. It is for authors of runtimes, in this module
// and in others.
//
// [Run] is the conformance suite. It sets up a repository, a home, and a fake
// agent in place of the CLI, and runs the runtime through [runner.Runner] as any
// caller does. Each failure names the rule that was broken. A test of a runtime is
// two functions:
//
//	func TestMain(m *testing.M) { backendtest.Main(m) }
//
//	func TestConformance(t *testing.T) {
//		backendtest.Run(t, backendtest.Harness{
//			Runtime: mine.Runtime(),
//			Lines: backendtest.Lines{
//				Text:    `{"say":"{text}"}`,
//				Success: `{"done":true}`,
//				Failure: `{"done":false,"why":"{text}"}`,
//			},
//		})
//	}
//
// [Check] tests the rules that need no such lines, outside of a test.
//
// [Transcripts] pins the events and the text of recorded output, and [FuzzDecoder]
// tests the contract of a decoder with any input.
//
// # The fake agent
//
// Install puts an executable into a directory. It performs its Step values and
// records how it was called (an Invocation). The executable is the running
// program itself, which is why it has to call [Main] or [PlayAgent].
package backendtest
