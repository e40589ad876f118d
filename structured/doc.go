// Package structured runs an agent whose answer is JSON that follows a JSON Schema.
// [Enforcer.Run] has the signature of runner.Runner.Run.
//
//	schema, err := structured.Compile(text)
//	e := structured.Enforcer{Next: &runner.Runner{}, Schema: schema}
//	result, err := e.Run(ctx, agent.Request{Runtime: "codex", Prompt: "…"}, agent.Output{})
//	// result.Text is the JSON value alone
//
// The runtime gets the schema by its CLI's own option if it has one that takes this
// schema, and in the prompt otherwise. Either way this package checks the answer.
//
// # The value of an answer
//
// The value is the whole answer without white space around it; or else the content of
// the only fenced code block that is JSON; or else the only object or array among the
// words. An answer that ends inside an object or array has no value. Refused are an
// object with the same name twice, numbers beyond the range of 64-bit floating point,
// more than 200 levels of nesting, and text that is not valid UTF-8.
//
// # The schema
//
// Drafts 2020-12 and draft-07. Nothing outside the schema is read: a $ref is "#", or
// "#/" and a path in the schema. Refused are anchors, an $id below the top, a $ref that
// leads to itself without end, and a schema of which more than 1000 subschemas apply to
// one value. A pattern is a regular expression of package regexp. A format is not
// checked.
//
// # Retry
//
// After an answer that does not follow the schema the agent is asked once more, with
// the list of [Violations]: in the same session if the runtime can resume it, otherwise
// in a new one with the first prompt and the answer. A failed run is not retried.
package structured

// This package has its own validator because github.com/santhosh-tekuri/jsonschema/v6
// compiles the metaschemas of all drafts in init, which adds about 5 ms of CPU time to
// every command, and reports nothing else about a value whose type, const or enum does
// not match.
