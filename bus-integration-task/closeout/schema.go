package closeout

// Schema is the JSON Schema of the closeout that an agent is asked for. It stays within
// what runtimes accept for structured output: every object is closed and all of its
// properties are required.
const Schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "closeout",
  "type": "object",
  "properties": {
    "task_complete": {"type": "boolean", "description": "true only if everything that the task asks for is done"},
    "status": {"type": "string", "enum": ["done", "blocked", "failed"]},
    "summary": {"type": "string", "description": "one line: what changed, or why not"},
    "changed_files": {"type": "array", "items": {"type": "string"}, "description": "every file added, changed or deleted, relative to the repository; both names of a renamed file"},
    "plan_closed": {"type": "boolean", "description": "true if you closed the item of PLAN.md for this task"},
    "no_matching_plan_item": {"type": "boolean", "description": "true if PLAN.md does not exist or has no item for this task"},
    "no_matching_plan_reason": {"type": "string", "description": "why no item of PLAN.md matches, or empty"},
    "required_checks": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "command": {"type": "string", "description": "the command as you ran it"},
          "result": {"type": "string", "enum": ["pass", "fail", "skip"]},
          "reason": {"type": "string", "description": "why it was skipped, or empty"}
        },
        "required": ["command", "result", "reason"],
        "additionalProperties": false
      }
    },
    "remaining_blockers": {"type": "array", "items": {"type": "string"}, "description": "what prevents acceptance; later work does not belong here"}
  },
  "required": ["task_complete", "status", "summary", "changed_files", "plan_closed", "no_matching_plan_item", "no_matching_plan_reason", "required_checks", "remaining_blockers"],
  "additionalProperties": false
}`

// Instruction asks an agent for its closeout. It belongs at the end of a task's prompt.
const Instruction = `Before you finish, run the tests or checks that cover your change. Run each as a
separate command, or join commands with "&&", so that its exit code is visible; a check
behind "|", ";" or "||" does not count, nor does one that ran before your last change to
anything but documentation. If PLAN.md has an item for this task, close it: check its box
and keep its words.

Then end your last message with one JSON object that follows this JSON Schema, and write
nothing after it. The worker compares it with the repository and with the commands that
you ran; a wrong report blocks the task. If the task needs no change, report task_complete
true, an empty changed_files, no_matching_plan_item true and the reason.

` + Schema + "\n"

// Again asks for the closeout alone, for an agent whose last message has none that is
// valid. The caller adds [Schema], as backend.AskJSON does.
const Again = `Your last message has no valid report of the task. Change nothing and run nothing. Report
the state of the work, with the commands that you ran.`
