package verify_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/verify"
)

// The test binary is also the CLI of the stub runtime: PATH has a link to it, and
// VERIFY_STUB names the promise that it breaks.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == stubName {
		os.Exit(stub{breaks: os.Getenv("VERIFY_STUB")}.main(os.Args[1:]))
	}
	if len(os.Args) == 2 && os.Args[1] == serveTool {
		if verify.ServeTool(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(killedEnv); path != "" {
		os.Exit(waitForTheKill(path))
	}
	os.Exit(m.Run())
}

const stubName = "verify-stub"

// A stub is a small agent CLI. It keeps its sessions in .stub in the home.
type stub struct {
	breaks string
	system string // the additional system prompt
	server *agent.MCPServer
	tools  string // a list of tools, see toolsArgument
}

// serveTool is the argument with which the test binary is an MCP server.
const serveTool = "serve-tool"

// toolsArgument returns the lists of tools of a request as an argument of the stub.
func toolsArgument(inv registry.Invocation) string {
	if len(inv.AllowTools) > 0 {
		return "allow," + strings.Join(inv.AllowTools, ",")
	}
	return "deny," + strings.Join(inv.DenyTools, ",")
}

// limited reports whether the request leaves out a tool.
func (s stub) limited(name string) bool {
	list := strings.Split(s.tools, ",")
	return s.breaks != "tools" && slices.Contains(list[1:], name) == (list[0] == "deny")
}

// offers returns the tools of the stub and of its MCP server, for a request to the model.
func (s stub) offers() (tools []any) {
	for _, name := range []string{"edit", "command"} {
		if !s.limited(name) {
			tools = append(tools, fields{"type": "function", "function": fields{"name": name}})
		}
	}
	if s.server == nil {
		return tools
	}
	var result struct{ Tools []struct{ Name string } }
	if json.Unmarshal(s.askServer("tools/list", "{}"), &result) != nil {
		return tools
	}
	for _, tool := range result.Tools {
		tools = append(tools, fields{"type": "function", "function": fields{"name": tool.Name}})
	}
	return tools
}

// callServer calls a tool of the MCP server.
func (s stub) callServer(c stubCall) string {
	var result struct{ Content []struct{ Text string } }
	raw := s.askServer("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, c.Function.Name, c.Function.Arguments))
	if json.Unmarshal(raw, &result) != nil || len(result.Content) == 0 {
		return "no answer of the server"
	}
	return result.Content[0].Text
}

// askServer starts the server for one request.
func (s stub) askServer(method, params string) json.RawMessage {
	cmd := exec.Command(s.server.Command, s.server.Args...)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params))
	for name, value := range s.server.Env {
		if s.breaks != "server" {
			cmd.Env = append(cmd.Environ(), name+"="+value)
		}
	}
	output, err := cmd.Output()
	var reply struct{ Result json.RawMessage }
	if err != nil || json.Unmarshal(output, &reply) != nil {
		return nil
	}
	return reply.Result
}

// setServer takes the MCP servers as they are in a file.
func (s *stub) setServer(config string) {
	if servers, err := agent.ParseMCPServers([]byte(config)); err == nil {
		s.server = &servers[0]
	}
}

// serversOf returns the servers of a request as they are in a file, "" for none.
func serversOf(inv registry.Invocation) string {
	if len(inv.MCPServers) == 0 {
		return ""
	}
	return string(agent.MCPConfig(inv.MCPServers))
}

// A stubLine is a line of its output.
type stubLine struct {
	Kind    agent.Kind    `json:"kind"`
	ID      string        `json:"id,omitempty"`
	Text    string        `json:"text,omitempty"`
	Input   string        `json:"input,omitempty"`
	Failed  bool          `json:"failed,omitempty"`
	Failure agent.Failure `json:"failure,omitempty"`
	Usage   *agent.Usage  `json:"usage,omitempty"`
}

func (s stub) say(l stubLine) {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err) // it always marshals
	}
	fmt.Println(string(data))
}

// A turn is a message of the Chat Completions API.
type turn struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	Calls   []stubCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
	Images  []string   `json:"images,omitempty"` // URLs with their content
}

// message returns the turn as the API has it.
func (t turn) message() any {
	if len(t.Images) == 0 {
		return t
	}
	parts := []fields{{"type": "text", "text": t.Content}}
	for _, image := range t.Images {
		parts = append(parts, fields{"type": "image_url", "image_url": fields{"url": image}})
	}
	return fields{"role": t.Role, "content": parts}
}

// image returns the URL of an image.
func (s stub) image(data []byte) string {
	if s.breaks == "attach-files" {
		data = append(data, 0)
	}
	return "data:" + (agent.Attachment{Data: data}).MediaType() + ";base64," + base64.StdEncoding.EncodeToString(data)
}

type stubCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// main runs the stub with the arguments --version, serve MODEL ACCESS TRUST SYSTEM SERVERS TOOLS,
// or MODEL EFFORT ACCESS SESSION TRUST SYSTEM SERVERS TOOLS [IMAGE...].
func (s stub) main(args []string) int {
	if len(args) == 1 {
		fmt.Println("stub 1.2.3")
		return 0
	}
	if args[0] == "serve" {
		s.settings(args[3] == "true")
		s.system = args[4]
		s.setServer(args[5])
		s.tools = args[6]
		return (&stubServer{stub: s, model: args[1], access: args[2]}).main()
	}
	s.settings(args[4] == "true")
	model, effort, access, session := args[0], args[1], args[2], args[3]
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 3
	}
	folder := filepath.Join(os.Getenv("HOME"), ".stub")
	if session == "latest" {
		data, _ := os.ReadFile(filepath.Join(folder, "latest")) // missing: a new session
		session = string(data)
	}
	var turns []turn
	if data, err := os.ReadFile(filepath.Join(folder, session+".json")); err == nil && session != "" {
		if json.Unmarshal(data, &turns) != nil {
			return 3
		}
	}
	session = cmp.Or(session, fmt.Sprint("s-", os.Getpid()))
	prompt := string(input)
	switch s.breaks {
	case "repeats-rules":
		if len(turns) > 0 {
			prompt += "MARKER-OF-THE-ROOT"
		}
	case "prompt":
		prompt = prompt[1:]
	case "prompt-run":
		_ = os.WriteFile("pwned", nil, 0o600)
	case "model":
		model = "another"
	case "effort":
		effort = ""
	case "session":
		turns = []turn{{Role: "user", Content: "something else"}}
	case "nul":
		prompt, _, _ = strings.Cut(prompt, "\x00")
	case "leaves-file":
		_ = os.WriteFile("stray", nil, 0o600)
	case "agents-md":
		prompt = strings.ReplaceAll(prompt, "MARKER-OF-THE-MIDDLE", "")
	case "agents-md-root":
		prompt = strings.ReplaceAll(prompt, "MARKER-OF-THE-ROOT", "MARKER-OF-THE-ROOT MARKER-OF-THE-ROOT")
	case "reads-links":
		if text, err := os.ReadFile("STUB.md"); err == nil {
			prompt += string(text)
		}
	case "stops-at-fifo":
		if info, err := os.Lstat("STUB.md"); err == nil && !info.Mode().IsRegular() {
			return 3
		}
	case "replaced":
		if text, err := os.ReadFile("STUB.override.md"); err == nil {
			prompt = strings.ReplaceAll(prompt, "Rules. MARKER-OF-THE-ROOT\n", string(text))
		}
	case "agents-md-deep":
		prompt = strings.ReplaceAll(prompt, "MARKER-OF-THE-WORKDIR", "")
	case "agents-md-crlf":
		prompt = strings.ReplaceAll(prompt, "One rule.\r\n", "")
	case "schema":
		prompt = strings.ReplaceAll(prompt, "frostpoint", "")
	case "attach-text":
		prompt = strings.ReplaceAll(prompt, "last line", "")
	case "agents-md-long":
		prompt = strings.ReplaceAll(prompt, "rule 7 of many\n", "")
	}
	s.say(stubLine{Kind: agent.KindSessionStarted, ID: session, Text: model})
	s.system = args[5]
	s.setServer(args[6])
	s.tools = args[7]
	said := turn{Role: "user", Content: prompt}
	for _, file := range args[8:] {
		data, err := os.ReadFile(file)
		if err != nil {
			return 3
		}
		said.Images = append(said.Images, s.image(data))
	}
	turns = append(turns, said)
	var used agent.Usage
	for {
		answer, usage, failure, err := s.ask(model, effort, turns)
		if err != nil {
			if s.breaks == "verdict" {
				s.say(stubLine{Kind: agent.KindResult})
				return 0
			}
			if s.breaks == "kind" {
				failure = ""
			}
			s.say(stubLine{Kind: agent.KindResult, Failed: true, Failure: failure, Text: err.Error()})
			return 1
		}
		used.Input, used.Cached = used.Input+usage.Input, used.Cached+usage.Cached
		used.Output, used.Reasoning = used.Output+usage.Output, used.Reasoning+usage.Reasoning
		if s.breaks == "words" {
			answer.Content = strings.ReplaceAll(answer.Content, "Turku", "Oulu")
		}
		turns = append(turns, answer)
		if answer.Content != "" {
			s.say(stubLine{Kind: agent.KindText, Text: answer.Content})
		}
		if len(answer.Calls) == 0 || s.breaks == "gives-up" {
			break
		}
		for _, c := range answer.Calls {
			turns = append(turns, turn{Role: "tool", CallID: c.ID, Content: s.tool(c, access)})
		}
	}
	if s.breaks == "empty" && turns[len(turns)-1].Content == "" {
		s.say(stubLine{Kind: agent.KindText, Text: "Hello."})
	}
	if s.breaks == "usage" {
		used.Output++
	}
	data, err := json.Marshal(turns)
	if err == nil {
		err = errors.Join(os.MkdirAll(folder, 0o700),
			os.WriteFile(filepath.Join(folder, session+".json"), data, 0o600),
			os.WriteFile(filepath.Join(folder, "latest"), []byte(session), 0o600))
	}
	if err != nil {
		return 3
	}
	s.say(stubLine{Kind: agent.KindUsage, Usage: &used})
	s.say(stubLine{Kind: agent.KindResult})
	return 0
}

// settings runs the program that a file of the workdir names, with trust.
func (s stub) settings(trust bool) {
	program, err := os.ReadFile("stub.settings")
	if err == nil && (trust || s.breaks == "runs-plants") && s.breaks != "never-runs-plants" {
		_ = exec.Command(string(program)).Run() // its file shows that it ran
	}
}

// ask sends the conversation to the model.
func (s stub) ask(model, effort string, turns []turn) (answer turn, u agent.Usage, failure agent.Failure, err error) {
	role := "system"
	if s.breaks == "system-prompt" {
		role = "user"
	}
	if s.system != "" {
		turns = append([]turn{{Role: role, Content: s.system}}, turns...)
	}
	messages := make([]any, len(turns))
	for i, t := range turns {
		messages[i] = t.message()
	}
	body, err := json.Marshal(map[string]any{"model": model, "reasoning_effort": effort, "messages": messages, "tools": s.offers()})
	if err != nil {
		return answer, u, "", err
	}
	if s.breaks == "silence" {
		return turn{Role: "assistant", Content: "I did not wait."}, u, "", nil
	}
	r, err := http.Post(os.Getenv("VERIFY_STUB_URL")+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return answer, u, "", err
	}
	defer r.Body.Close()
	switch r.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return answer, u, agent.FailureAuthentication, errors.New(r.Status)
	case http.StatusTooManyRequests:
		return answer, u, agent.FailureQuota, errors.New(r.Status)
	default:
		return answer, u, "", errors.New(r.Status)
	}
	var document struct {
		Choices []struct{ Message turn }
		Usage   struct {
			Prompt     int64 `json:"prompt_tokens"`
			Completion int64 `json:"completion_tokens"`
			Input      struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
			Output struct {
				Reasoning int64 `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&document); err != nil || len(document.Choices) == 0 {
		return answer, u, "", errors.Join(errors.New("no answer"), err)
	}
	n := document.Usage
	u = agent.Usage{Input: n.Prompt, Cached: n.Input.Cached, Output: n.Completion, Reasoning: n.Output.Reasoning}
	return document.Choices[0].Message, u, "", nil
}

// tool calls a tool and returns its output.
func (s stub) tool(c stubCall, access string) string {
	var in struct{ Path, Command string }
	if err := json.Unmarshal([]byte(c.Function.Arguments), &in); err != nil {
		return err.Error()
	}
	output := "denied"
	allowed := access == "full" || s.breaks == "access"
	switch workdir, _ := os.Getwd(); {
	case c.Function.Name == "recall_word":
		output = s.callServer(c)
	case s.breaks == "denies":
	case c.Function.Name == "edit" && (allowed || access == "write" && filepath.Dir(in.Path) == workdir):
		output = fmt.Sprint(os.WriteFile(in.Path, nil, 0o600))
	case c.Function.Name == "command" && allowed:
		data, err := exec.Command("/bin/sh", "-c", in.Command).CombinedOutput()
		output = fmt.Sprint(string(data), err)
	}
	if s.breaks != "tool-call" {
		s.say(stubLine{Kind: agent.KindToolCall, ID: c.ID, Text: c.Function.Name, Input: in.Path + in.Command})
	}
	if s.breaks == "tool-id" {
		c.ID = "another"
	}
	s.say(stubLine{Kind: agent.KindToolResult, ID: c.ID, Text: output})
	return output
}

type stubDecoder struct{}

func (stubDecoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	var l stubLine
	if json.Unmarshal(raw, &l) != nil {
		return append(events, agent.Event{Kind: agent.KindRaw, Text: string(raw)})
	}
	e := agent.Event{Kind: l.Kind, Text: l.Text, Failed: l.Failed, Failure: l.Failure, Usage: l.Usage}
	switch l.Kind {
	case agent.KindSessionStarted:
		e.SessionID, e.Model, e.Text = l.ID, l.Text, ""
	case agent.KindToolCall:
		input, err := json.Marshal(l.Input)
		if err != nil {
			panic(err) // strings always marshal
		}
		e.Tool, e.Text = &agent.Tool{ID: l.ID, Name: l.Text, Input: input}, ""
	case agent.KindToolResult:
		e.Tool, e.Text = &agent.Tool{ID: l.ID, Output: agent.Plain(l.Text)}, ""
	}
	return append(events, e)
}

// stubPrepare delivers AGENTS.md before the first prompt of a session.
func stubPrepare(ctx context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
	if inv.Resume != "" || inv.Continue {
		return registry.Setup{}, nil
	}
	return registry.PrependInstructions(ctx, inv, w)
}

// stubRuntime returns the description of the stub. edit may change it.
func stubRuntime() registry.Runtime {
	return registry.Runtime{
		ID:          "stub",
		Name:        "Stub",
		Executables: []string{stubName},
		InstallURL:  "https://example.invalid/",
		PromptLimit: registry.Limit{Bytes: 4 << 20},
		Run: registry.Use{
			Options: registry.Options{
				Model: true, Efforts: agent.Efforts(), Access: agent.Accesses(), Resume: true, Continue: true, AppendSystemPrompt: true, MCPServers: true, AllowTools: true, DenyTools: true,
				Attachments: agent.ImageTypes(), AttachmentFiles: true,
			},
			Prepare: stubPrepare,
			Command: func(inv registry.Invocation) (agent.Command, error) {
				session := inv.Resume
				if inv.Continue {
					session = "latest"
				}
				args := []string{inv.Model, string(inv.ReasoningEffort), string(inv.Access), session, fmt.Sprint(inv.TrustWorkspace), inv.AppendSystemPrompt, serversOf(inv), toolsArgument(inv)}
				for _, a := range inv.Attachments {
					args = append(args, a.Path)
				}
				return agent.Command{Args: args, Stdin: inv.Prompt}, nil
			},
		},
		Decoder:       func() formatters.Decoder { return stubDecoder{} },
		ReportsResult: true,
		Instructions:  &registry.Instructions{MaxBytes: instructions.MaxBytes},
		Session:       stubSessions(),
	}
}

// stubTarget returns a target for a stub that breaks a promise, or that keeps all.
func stubTarget(breaks string) verify.Target {
	tool := func(name, argument string) func(string) modeltest.ToolCall {
		return func(value string) modeltest.ToolCall {
			data, err := json.Marshal(map[string]string{argument: value})
			if err != nil {
				panic(err) // strings always marshal
			}
			return modeltest.ToolCall{Name: name, Arguments: string(data)}
		}
	}
	return verify.Target{
		Runtime: "stub",
		Model:   "parrot-1",
		Env: func(s *modeltest.Server) []string {
			return []string{"VERIFY_STUB=" + breaks, "VERIFY_STUB_URL=" + s.OpenAIURL(), "GORACE=atexit_sleep_ms=0"}
		},
		Keeps: []string{".stub"},
		Plants: func(program func(string) string) map[string]string {
			return map[string]string{"stub.settings": program("hook")}
		},
		Context: []string{"STUB.md"}, Replaces: []string{"STUB.override.md"},
		Tools:   []string{"edit", "command"},
		Edit:    tool("edit", "path"),
		Command: tool("command", "command"),
	}
}

// stubOptions returns options whose registry has rt and whose PATH has the stub.
func stubOptions(t *testing.T, rt registry.Runtime, checks ...string) verify.Options {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, stubName)); err != nil {
		t.Fatal(err)
	}
	reg := &registry.Registry{}
	if err := reg.Register(rt); err != nil {
		t.Fatal(err)
	}
	return verify.Options{
		Registry: reg,
		Environ:  []string{"PATH=" + bin + string(filepath.ListSeparator) + "/usr/bin:/bin", "SECRET=not passed on"},
		Checks:   checks,

		ToolServer: []string{program, serveTool},

		Limit: time.Minute,
	}
}

// statuses returns the checks of a report with one of the statuses.
func statuses(r verify.Report, want ...verify.Status) (names []string) {
	for _, result := range r.Results {
		if slices.Contains(want, result.Status) {
			names = append(names, result.Check)
		}
	}
	return names
}
