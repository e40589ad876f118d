package verify

import (
	"fmt"
	"net/http"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

// The scenes of attempts, and the deeds in them. The workdir of linked is a folder of the
// repository.
var (
	readEdit, readCommand   = edits("edited"), runs("touched")
	writeEdit, writeOutside = edits("edited"), edits("../../edited")
	fullCommand             = runs("touched")

	reads  = attempts(agent.AccessRead, adjacent, readEdit, readCommand)
	allows = limitedAttempts(allowsEdit, agent.AccessRead, atRoot, readEdit)
	writes = attempts(agent.AccessWrite, linked, writeEdit, writeOutside)
	fulls  = attempts(agent.AccessFull, uneven, fullCommand)
)

// table returns all checks. A check without a scene starts the CLI itself.
func table() []Check {
	return []Check{
		{"prompt-dash", `A prompt that begins with "-" arrives as it is.`, nil, nil, prompt("--help me with -s danger-full-access")},
		{"prompt-slash", `A prompt that begins with "/" arrives as text; a line break may precede it.`, nil, nil, prompt("/compact the prose")},
		{"prompt-at", `An "@" that names no file arrives as it is.`, nil, nil, prompt("@missing-here and a@b.example")},
		{"prompt-bang", `A prompt that begins with "!" arrives as it is and runs nothing.`, nil, nil, prompt("!touch pwned; $(touch pwned) `touch pwned`")},
		{"prompt-space", "Blanks, tabs and line ends of a prompt arrive as they are.", nil, nil, prompt("  two blanks\n\ttab, résumé 日本語\nand an end\n")},
		{"prompt-1mb", "A prompt of 1,000,000 bytes arrives whole.", fits(1_000_000), nil, longPrompt(1_000_000)},
		{"prompt-3mb", "A prompt of 3,000,000 bytes arrives whole.", fits(3_000_000), nil, longPrompt(3_000_000)},
		{"prompt-limit", "A prompt over the limit of the runtime is refused before anything starts.", hasPromptLimit, nil, promptLimit},
		{"prompt-nul", "A prompt with a NUL arrives as it is, or is refused before anything starts.", nil, nil, promptNUL},

		{"attach-text", "An attached text file arrives whole before the prompt.", nil, nil, attachText},
		{"attach-files", "Attached images and other files arrive with their bytes, or as the same picture in another format.", attaches, nil, attachFiles},
		{"attach-refused", "A file that the runtime cannot pass to its model is refused before anything starts.", refusesFiles, nil, attachRefused},

		{"agents-md", "Each AGENTS.md from the root to the workdir arrives once and in order.", hasInstructions, answers, arrived(firstTake, rootMark, middleMark, deepMark)},
		{"agents-md-root", "An AGENTS.md in the root alone arrives once.", hasInstructions, nothing, arrived(layoutTake, rootMark)},
		{"agents-md-adjacent", "An AGENTS.md next to another context file of the CLI arrives once.", all(hasInstructions, hasContext), reads, arrived(layoutTake, rootMark)},
		{"agents-md-replaced", "A file that the CLI reads in place of an AGENTS.md is named in a warning.", all(hasInstructions, hasReplaces), values, replacedWithWarning},
		{"agents-md-link", "An AGENTS.md that is a link in the repository, or that other context files import or link to, arrives once.", hasInstructions, writes, arrived(layoutTake, rootMark, middleMark)},
		{"agents-md-empty", "An empty AGENTS.md does not keep others from arriving.", hasInstructions, fulls, arrived(layoutTake, rootMark, deepMark)},
		{"agents-md-crlf", "An AGENTS.md with the line ends of Windows arrives whole.", hasInstructions, fulls, arrivedWhole(layoutTake, windowsText)},
		{"agents-md-long", "An AGENTS.md of 100 KiB arrives whole.", hasInstructions, writes, arrivedWhole(layoutTake, longRules())},

		{"model", "The requested model arrives and is reported.", hasModel, answers, model},
		{"effort", "The requested reasoning effort arrives.", hasEffort, answers, effort},
		{"system-prompt", "An additional system prompt arrives as text of the system or the developer, also when a session is resumed.", hasSystemPrompt, answers, systemPrompt},
		{"schema", "A schema arrives, and the answer is a JSON value that follows it.", hasRuns, values, schema},

		{"http-400", "A refused request (HTTP 400) fails the run.", nil, nil, failure(status(http.StatusBadRequest), agent.ErrAgent)},
		{"http-401", "A refused login (HTTP 401) fails the run as one of authentication.", nil, nil, failure(status(http.StatusUnauthorized), agent.ErrAuthentication)},
		{"http-403", "A forbidden request (HTTP 403) fails the run as one of authentication.", nil, nil, failure(status(http.StatusForbidden), agent.ErrAuthentication)},
		{"http-429", "A rate limit (HTTP 429) fails the run as one of quota.", nil, nil, failure(status(http.StatusTooManyRequests), agent.ErrQuota)},
		{"http-500", "A failing server (HTTP 500) fails the run.", nil, nil, failure(status(http.StatusInternalServerError), agent.ErrAgent)},
		{"stream-cut", "An answer whose stream is cut each time fails the run.", nil, nil, failure(modeltest.Reply{modeltest.Text{"half an ans"}, modeltest.Cut{}}, agent.ErrAgent)},
		{"empty-answer", "A model that answers nothing ends the run, without text.", nil, nothing, emptyAnswer},

		{"tool-call", "A tool call and its output are events with one ID.", hasCommand, answers, toolCall},
		{"usage", "Each run reports the tokens that the model reported.", nil, answers, usage},
		{"mcp", "The model is offered the tool of an MCP server of the user, its call is answered by the server, and the server ends with the run.", all(hasRuns, hasServers), nil, servers},
		{"tools-allowed", "With a list of allowed tools, the model is offered these and no others.", all(hasRuns, hasAllowTools), nil, tools(allowsOne)},
		{"tools-denied", "The model is not offered a denied tool, and is still offered others.", all(hasRuns, hasDenyTools), nil, tools(deniesOne)},
		{"tools-access", "With read access, an edit does not change a file although its tool is allowed, or such a request is refused.", all(hasRuns, hasAllowTools, hasAccess(agent.AccessRead), hasEdit), allows, allowedEdit},
		{"resume", "A run resumes the session with the reported ID, and no other.", hasResume, answers, resume},
		{"continue", "A run continues the latest session of the workdir.", hasContinue, answers, continued},

		{"read-edit", "With read access, an edit does not change a file.", all(hasAccess(agent.AccessRead), hasEdit), reads, did(readEdit, false)},
		{"read-command", "With read access, a command does not change a file.", all(hasAccess(agent.AccessRead), hasCommand), reads, did(readCommand, false)},
		{"write-edit", "With write access, an edit changes a file of the workdir.", all(hasAccess(agent.AccessWrite), hasEdit), writes, did(writeEdit, true)},
		{"write-outside", "With write access, an edit does not change a file outside the workdir.", all(hasAccess(agent.AccessWrite), hasEdit), writes, did(writeOutside, false)},
		{"full-command", "With full access, a command runs.", all(hasAccess(agent.AccessFull), hasCommand), fulls, did(fullCommand, true)},

		{turnsFact, "A session answers turn after turn, and the model gets those before.", hasSession, conversation, found(turnsFact)},
		{slashFact, `A message of a session that begins with "/" arrives as text; a line break may precede it.`, hasSession, conversation, found(slashFact)},
		{systemFact, "An additional system prompt of a session arrives as text of the system or the developer, also when it is resumed.", all(hasSession, hasSessionSystemPrompt), conversation, found(systemFact)},
		{"session-mcp", "A session offers the model the tool of an MCP server of the user, and an accepted call of it is answered by the server.", all(hasSession, hasSessionServers), nil, sessionServers},
		{"session-tools-allowed", "With a list of allowed tools, the model of a session is offered these and no others.", all(hasSession, hasSessionAllowTools), nil, sessionTools(allowsOne)},
		{"session-tools-denied", "The model of a session is not offered a denied tool, and is still offered others.", all(hasSession, hasSessionDenyTools), nil, sessionTools(deniesOne)},
		{steerFact, "A message that is sent during a turn arrives, in that turn or as the next one.", hasSession, interruption, found(steerFact)},
		{interruptFact, "An interrupted turn ends as canceled, with its command, and the session takes another.", all(hasSession, hasSessionAccess(agent.AccessFull), hasCommand), interruption, found(interruptFact)},
		{approvalFact, "A command that access does not include runs in a session only after an approval.", all(hasSession, hasSessionAccess(agent.AccessWrite, agent.AccessRead), hasCommand), conversation, found(approvalFact)},
		{"session-attach", "Files attached to a message of a session arrive as those of a run, or are refused.", hasSession, nil, sessionAttach},
		{resumeFact, "A session whose agent was killed is resumed with its ID and its turns.", all(hasSession, hasSessionResume), conversation, found(resumeFact)},

		{"repo-runs-nothing", "Nothing in a repository runs by itself: what settings of the CLI and of git name, executables in PATH.", nil, nil, runsNothing},
		{"plants-fire", "All of that runs with trust or by git alone, so that repo-runs-nothing can fail.", nil, nil, plantsFire},
		{nothingFact, "In a session, nothing in a repository runs by itself.", hasSession, conversation, found(nothingFact)},
		{"context-link", "A link out of the repository does not arrive, at any place where a CLI reads files by itself.", nil, nil, linkedSecret},
		{"context-fifo", "A FIFO at such a place does not hold up the run.", nil, nil, contextFIFO},

		{"timeout", "A run whose model is silent ends at its timeout, with its processes.", nil, nil, silence(agent.Request{Timeout: 4 * time.Second}, agent.ErrTimeout)},
		{"idle-timeout", "A run without progress ends at its idle timeout, with its processes.", hasRuns, nil, silence(agent.Request{IdleTimeout: 4 * time.Second}, agent.ErrIdleTimeout)},
		{"cancel", "A canceled run ends with the command that its agent runs.", all(hasAccess(agent.AccessFull), hasCommand), nil, canceled},
		{"leaves-nothing", "A run leaves no process and no file, except in the home what the CLI keeps there.", nil, answers, leavesNothing},
	}
}

// long returns a prompt of n bytes, no part of which is like another.
func long(n int) string {
	const end = "the end €\n"
	text := make([]byte, 0, n+8)
	for i := 0; len(text) < n; i++ {
		text = fmt.Appendf(text, "%d ", i)
	}
	return string(text[:n-len(end)]) + end
}
