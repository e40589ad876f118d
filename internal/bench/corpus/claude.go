package corpus

// claude prints as `claude -p --output-format stream-json
// --include-partial-messages --verbose` does.
type claude struct {
	*generator
	session string
	message int
	tool    string
	parent  string // the tool call of the subagent at work, as JSON
}

func (c *claude) start() {
	c.uuid()
	c.session, c.parent = string(c.line), "null"
	c.line = c.line[:0]
	c.add(`{"type":"system","subtype":"init","cwd":"/srv/project/work","session_id":"`, c.session,
		`","tools":["Task","Bash","Edit","Glob","Grep","NotebookEdit","Read","Skill","TaskStop","ToolSearch","WebFetch","WebSearch","Write"],`+
			`"mcp_servers":[],"model":"claude-opus-5-5","permissionMode":"acceptEdits","slash_commands":["review","compact","context","cost","init"],`+
			`"apiKeySource":"none","claude_code_version":"2.1.329","output_style":"default","agents":["general-purpose","Explore","Plan"],`+
			`"skills":[],"plugins":[],`)
	c.tail()
}

// turn is one message of the model and what its tools gave.
func (c *claude) turn() {
	c.message++
	c.parent = "null"
	if c.random.percent(10) {
		c.parent = `"toolu_01Subagent"`
	}
	c.add(`{"type":"system","subtype":"status","status":"requesting","session_id":"`, c.session, `",`)
	c.tail()
	c.event(`{"type":"message_start","message":{"id":"msg_`)
	c.number(c.message)
	c.add(`","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,` +
		`"usage":{"input_tokens":3,"cache_creation_input_tokens":412,"cache_read_input_tokens":18211,"output_tokens":1}}}`)
	c.eventTail()
	if c.random.percent(40) {
		c.think()
	}
	if c.random.percent(70) {
		c.talk()
	}
	for range c.random.between(1, 3) {
		c.call()
		c.event(`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":142}}`)
		c.eventTail()
		if c.random.percent(30) {
			c.add(`{"type":"tool_progress","tool_use_id":"`, c.tool, `","tool_name":"Bash","parent_tool_use_id":`, c.parent,
				`,"elapsed_time_seconds":30,"session_id":"`, c.session, `",`)
			c.tail()
		}
		c.result()
	}
	c.event(`{"type":"message_stop"}`)
	c.eventTail()
}

func (c *claude) think() {
	c.block(0, `{"type":"thinking","thinking":"","signature":""}`)
	for range c.random.between(2, 10) {
		c.event(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"`)
		c.piece(words)
		c.add(`"}}`)
		c.eventTail()
	}
	c.event(`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"`)
	c.id(340)
	c.add(`"}}`)
	c.eventTail()
	c.assistant(`{"type":"thinking","thinking":"`)
	c.say(c.random.between(1, 8))
	c.add(`","signature":"`)
	c.id(340)
	c.assistantTail(`"}`)
}

func (c *claude) talk() {
	c.block(1, `{"type":"text","text":""}`)
	for range c.random.between(2, 16) {
		c.event(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"`)
		c.piece(words)
		c.add(`"}}`)
		c.eventTail()
	}
	c.assistant(`{"type":"text","text":"`)
	c.say(c.random.between(1, 8))
	c.assistantTail(`"}`)
}

// call is a call of a tool: its input in pieces, then whole.
func (c *claude) call() {
	c.line = append(c.line[:0], "toolu_01"...)
	c.id(22)
	c.tool = string(c.line)
	c.line = c.line[:0]
	c.block(2, `{"type":"tool_use","id":"`+c.tool+`","name":"Bash","input":{}}`)
	for range c.random.between(1, 5) {
		c.event(`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"comm`)
		c.piece(words)
		c.add(`"}}`)
		c.eventTail()
	}
	c.assistant(`{"type":"tool_use","id":"`)
	c.add(c.tool, `","name":"`)
	switch c.random.below(4) {
	case 0:
		c.add(`Read","input":{"file_path":"`)
		c.fileName()
		c.add(`","offset":`)
		c.number(c.random.below(900))
		c.add(`,"limit":200}`)
	case 1:
		c.add(`Edit","input":{"file_path":"`)
		c.fileName()
		c.add(`","old_string":"`)
		c.output(c.random.between(40, 600))
		c.add(`","new_string":"`)
		c.output(c.random.between(40, 900))
		c.add(`"}`)
	default:
		c.add(`Bash","input":{"command":"`)
		c.command()
		c.add(`","description":"`)
		c.say(1)
		c.add(`"}`)
	}
	c.assistantTail(`}`)
}

// result is what a tool gave: for the model, and again with its parts.
func (c *claude) result() {
	c.add(`{"type":"user","message":{"role":"user","content":[{"tool_use_id":"`, c.tool, `","type":"tool_result","content":"`)
	if c.random.percent(6) {
		c.add(`Exit code 1\n`)
		from := len(c.line)
		c.output(c.random.outputSize() / 4)
		output := string(c.line[from:])
		c.add(`","is_error":true}]},"parent_tool_use_id":`, c.parent, `,"session_id":"`, c.session, `","tool_use_result":"Error: Exit code 1\n`, output, `",`)
		c.tail()
		return
	}
	from := len(c.line)
	c.output(c.random.outputSize() * 11 / 10)
	output := string(c.line[from:])
	if c.random.percent(25) { // an edit, whose result names the file
		c.add(`"}]},"parent_tool_use_id":`, c.parent, `,"session_id":"`, c.session, `","tool_use_result":{"filePath":"`)
		c.fileName()
		c.add(`","originalFile":"`, output, `","structuredPatch":[{"oldStart":38,"oldLines":9,"newStart":38,"newLines":12,"lines":["`)
		c.output(c.random.between(40, 400))
		c.add(`"]}],"userModified":false},`)
		c.tail()
		return
	}
	c.add(`","is_error":false}]},"parent_tool_use_id":`, c.parent, `,"session_id":"`, c.session,
		`","tool_use_result":{"stdout":"`, output, `","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false},`)
	c.tail()
}

func (c *claude) end() {
	c.add(`{"duration_api_ms":48231,"stop_reason":"end_turn","session_id":"`, c.session, `","total_cost_usd":1.209892,`+
		`"usage":{"input_tokens":2000,"cache_creation_input_tokens":41300,"cache_read_input_tokens":918211,"output_tokens":18412},`+
		`"modelUsage":{"claude-opus-5-5":{"inputTokens":2000,"outputTokens":18412,"cacheReadInputTokens":918211,`+
		`"cacheCreationInputTokens":41300,"webSearchRequests":0,"costUSD":1.209892,"contextWindow":1000000}},"permission_denials":[],`+
		`"is_error":false,"num_turns":`)
	c.number(c.message)
	c.add(`,"subtype":"success","api_error_status":null,"result":"`)
	c.say(6)
	c.add(`","type":"result","duration_ms":51233,"uuid":"`)
	c.uuid()
	c.add(`"}`)
	c.flush()
}

func (c *claude) block(index int, block string) {
	c.event(`{"type":"content_block_start","index":`)
	c.number(index)
	c.add(`,"content_block":`, block, `}`)
	c.eventTail()
}

func (c *claude) event(event string) { c.add(`{"type":"stream_event","event":`, event) }

func (c *claude) eventTail() {
	c.add(`,"session_id":"`, c.session, `","parent_tool_use_id":`, c.parent, `,`)
	c.tail()
}

func (c *claude) assistant(block string) {
	c.add(`{"type":"assistant","message":{"id":"msg_`)
	c.number(c.message)
	c.add(`","type":"message","role":"assistant","model":"claude-opus-5-5","content":[`, block)
}

func (c *claude) assistantTail(block string) {
	c.add(block, `],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":412,`+
		`"cache_read_input_tokens":18211,"output_tokens":1},"context_management":null},"parent_tool_use_id":`, c.parent,
		`,"session_id":"`, c.session, `","timestamp":"2026-11-21T00:25:10.881Z",`)
	c.tail()
}

// tail ends a line with the ID that each has.
func (c *claude) tail() {
	c.add(`"uuid":"`)
	c.uuid()
	c.add(`"}`)
	c.generator.end()
}
