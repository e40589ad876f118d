// Package modeltest is a scripted model server for end-to-end tests of real
// agent CLIs: it listens on loopback, answers model requests according to a
// script and records every request. No account, key or network is needed.
//
//	srv, err := modeltest.Start(modeltest.Replies(
//		modeltest.Reply{modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"ls"}`}},
//		modeltest.Reply{modeltest.Text{"There are ", "two files."}},
//	))
//	defer srv.Close()
//
// A script does not name a provider. The server recognises the provider of a
// request by its path and answers in its form, streaming or as one document:
//
//   - the OpenAI Responses API at [Server.OpenAIURL] and [Server.OllamaURL]
//   - the OpenAI Chat Completions API at [Server.OpenAIURL]
//   - the Anthropic Messages API at [Server.AnthropicURL]
//   - Gemini's generateContent and streamGenerateContent at [Server.GeminiURL]
//
// Side requests of a CLI (lists of models, versions, token counts, an upgrade to
// a websocket, a small model's choice between given answers, or its judgment of a
// tool call, which is always "safe") get a sensible answer and are recorded, but
// do not consume the script.
package modeltest
