// Package structured runs an agent whose answer has to be JSON that follows a JSON
// Schema: a decorator of a runner with the same Run.
//
//	schema, err := structured.Compile(text)
//	r := structured.Enforcer{Next: &runner.Runner{}, Schema: schema}
//	result, err := r.Run(ctx, agent.Request{Runtime: "codex", Prompt: "…"}, agent.Output{})
//	// result.Text is the JSON value alone
//
// The runtime is told of the schema by its CLI's own option where it has one that
// takes this schema, and with the prompt otherwise. Either way the answer is checked
// here: an answer is not believed to follow a schema because a CLI says so.
//
// # The value of an answer
//
// The value is the whole answer, white space at its ends aside; or else the whole
// content of the one fenced code block that is JSON; or else the one object or array
// that stands among the words. Two of a kind are one too many, and an answer that
// ends inside of a value has none. An object with the same name twice is refused, and
// so are numbers beyond the range of 64-bit floating point, more than 200 levels of
// depth, and text that is not valid UTF-8.
//
// # The schema
//
// Drafts 2020-12 and draft-07. Nothing outside of the schema is ever read: a $ref is
// "#" or "#/" and a way through it; anchors and an $id below the top are refused, and
// a $ref that leads back to itself. pattern is a regular expression of package
// regexp, which takes time in proportion to the text. format is a remark, not a rule.
// multipleOf takes whole numbers, and answers beyond 2^53 are rounded for it. A schema
// that takes more than 1000 steps to check one value is refused: schemas that apply to
// it, and what is large in them. A check that takes long ends with the run's time.
//
// # Repair
//
// An answer that does not follow the schema is repaired once: the agent is told
// what is wrong and asked again, in the same session where the runtime can resume it,
// and in a new one with the first prompt, its answer and what is wrong otherwise. A
// run that failed is not repaired.
package structured
