package corpus

// gemini prints as `gemini -o stream-json` does: pieces of messages, tools.
type gemini struct {
	*generator
	time int // milliseconds since the start
	tool int
}

func (c *gemini) start() {
	c.open("init")
	c.add(`"session_id":"`)
	c.uuid()
	c.close(`","model":"gemini-2.5-flash"`)
	c.open("message")
	c.add(`"role":"user","content":"`)
	c.say(2)
	c.close(`"`)
}

// turn is what the model says in pieces, and its tools.
func (c *gemini) turn() {
	for range c.random.between(2, 12) {
		c.open("message")
		c.add(`"role":"assistant","content":"`)
		for range c.random.between(1, 3) {
			c.piece(words)
		}
		c.close(`","delta":true`)
	}
	for range c.random.between(1, 4) {
		c.call()
	}
}

func (c *gemini) call() {
	c.tool++
	c.open("tool_use")
	name := "run_shell_command"
	switch c.random.below(3) {
	case 0:
		name = "read_file"
		c.add(`"tool_name":"read_file","tool_id":"read_file__fc`)
		c.number(c.tool)
		c.add(`","parameters":{"absolute_path":"`)
		c.fileName()
	case 1:
		name = "replace"
		c.add(`"tool_name":"replace","tool_id":"replace__fc`)
		c.number(c.tool)
		c.add(`","parameters":{"old_string":"`)
		c.output(c.random.between(40, 600))
		c.add(`","new_string":"`)
		c.output(c.random.between(40, 900))
		c.add(`","file_path":"`)
		c.fileName()
	default:
		c.add(`"tool_name":"run_shell_command","tool_id":"run_shell_command__fc`)
		c.number(c.tool)
		c.add(`","parameters":{"command":"`)
		c.command()
		c.add(`","description":"`)
		c.say(1)
	}
	c.close(`"}`)

	c.open("tool_result")
	c.add(`"tool_id":"`, name, `__fc`)
	c.number(c.tool)
	if c.random.percent(6) {
		c.add(`","status":"error","output":"`)
		from := len(c.line)
		c.say(2)
		message := string(c.line[from:])
		c.close(`","error":{"type":"invalid_tool_params","message":"` + message + `"}`)
		return
	}
	c.add(`","status":"success","output":"`)
	c.output(c.random.outputSize() * 80 / 100)
	c.close(`"`)
}

func (c *gemini) end() {
	c.open("result")
	c.add(`"status":"success","stats":{"total_tokens":1204168,"input_tokens":1190000,"output_tokens":9168,"cached":900120,` +
		`"input":289880,"duration_ms":51142,"tool_calls":`)
	c.number(c.tool)
	c.add(`,"models":{"gemini-2.5-flash":{"total_tokens":1204168,"input_tokens":1190000,"output_tokens":9168,"cached":900120,"input":289880}}}}`)
	c.flush()
}

func (c *gemini) open(kind string) {
	c.time += c.random.between(1, 40)
	c.add(`{"type":"`, kind, `","timestamp":"2026-11-21T`)
	for i, unit := range []struct{ size, of int }{{3_600_000, 24}, {60_000, 60}, {1_000, 60}} {
		if i > 0 {
			c.add(`:`)
		}
		n := c.time / unit.size % unit.of
		c.number(n / 10)
		c.number(n % 10)
	}
	c.add(`.`)
	for _, unit := range []int{100, 10, 1} {
		c.number(c.time / unit % 10)
	}
	c.add(`Z",`)
}

func (c *gemini) close(members string) {
	c.add(members, `}`)
	c.generator.end()
}
