package corpus

// codex prints as `codex exec --json` does: whole items, no pieces.
type codex struct {
	*generator
	item int
}

func (c *codex) start() {
	c.add(`{"type":"thread.started","thread_id":"`)
	c.uuid()
	c.add(`"}`)
	c.generator.end()
	c.add(`{"type":"turn.started"}`)
	c.generator.end()
}

// turn is what the model says and the items it works on.
func (c *codex) turn() {
	if c.random.percent(60) {
		c.open("completed", "reasoning", `"text":"**Checking** `)
		c.say(c.random.between(1, 6))
		c.close(`"`)
	}
	if c.random.percent(50) {
		c.open("completed", "agent_message", `"text":"`)
		c.say(c.random.between(1, 8))
		c.close(`"`)
	}
	switch n := c.random.below(100); {
	case n < 8:
		c.change()
	case n < 14:
		c.plan()
	case n < 18:
		c.server()
	case n < 20:
		c.open("completed", "web_search", `"query":"`)
		c.say(1)
		c.close(`"`)
	}
	for range c.random.between(1, 3) {
		c.command()
	}
}

// command is a command from its start to its end.
func (c *codex) command() {
	from := len(c.line)
	c.generator.command()
	command := string(c.line[from:])
	c.line = c.line[:from]
	c.open("started", "command_execution", `"command":"/bin/bash -lc \"`)
	c.add(command, `\"","aggregated_output":"","exit_code":null,`)
	c.close(`"status":"in_progress"`)
	c.item--
	c.open("completed", "command_execution", `"command":"/bin/bash -lc \"`)
	c.add(command, `\"","aggregated_output":"`)
	c.output(c.random.outputSize() * 46 / 100)
	if c.random.percent(8) {
		c.close(`","exit_code":1,"status":"failed"`)
		return
	}
	c.close(`","exit_code":0,"status":"completed"`)
}

func (c *codex) change() {
	c.open("completed", "file_change", `"changes":[`)
	for i := range c.random.between(1, 4) {
		if i > 0 {
			c.add(`,`)
		}
		c.add(`{"path":"`)
		c.fileName()
		c.add(`","kind":"update"}`)
	}
	c.close(`],"status":"completed"`)
}

func (c *codex) plan() {
	c.open("updated", "todo_list", `"items":[`)
	for i := range c.random.between(3, 7) {
		if i > 0 {
			c.add(`,`)
		}
		c.add(`{"text":"`)
		c.say(1)
		if c.random.percent(50) {
			c.add(`","completed":true}`)
		} else {
			c.add(`","completed":false}`)
		}
	}
	c.close(`]`)
}

// server is a call of a tool of an MCP server.
func (c *codex) server() {
	c.open("started", "mcp_tool_call", `"server":"issues","tool":"search","arguments":{"query":"timeout","limit":20},"result":null,"error":null,`)
	c.close(`"status":"in_progress"`)
	c.item--
	c.open("completed", "mcp_tool_call", `"server":"issues","tool":"search","arguments":{"query":"timeout","limit":20},"result":{"content":[{"type":"text","text":"`)
	c.output(c.random.outputSize() / 4)
	c.close(`"}],"structured_content":null},"error":null,"status":"completed"`)
}

func (c *codex) end() {
	c.add(`{"type":"turn.completed","usage":{"input_tokens":1202020,"cached_input_tokens":1100200,"cache_write_input_tokens":0,` +
		`"output_tokens":18100,"reasoning_output_tokens":9014}}`)
	c.flush()
}

// open begins the line of an item at a stage.
func (c *codex) open(stage, kind, members string) {
	c.add(`{"type":"item.`, stage, `","item":{"id":"item_`)
	c.number(c.item)
	c.add(`","type":"`, kind, `",`, members)
	c.item++
}

func (c *codex) close(members string) {
	c.add(members, `}}`)
	c.generator.end()
}
