//go:build unix

// Command frozen plays every agent CLI for its tests, which compare what bus-agent does with
// files in testdata, so that a review shows each change of behaviour as a difference of text:
//
//   - requests: how each runtime's CLI is started for a table of requests;
//   - outputs: what a run makes of each recorded output;
//   - commands: help, completion, exit codes and JSON members of each command;
//   - records: the files of a recorded run.
//
// "make frozen-update" rewrites the files.
package main

import (
	"bufio"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// A play is what a stub does. It is in a file next to the stub.
type play struct {
	Session bool   // it answers requests until the first message arrives, as "codex app-server" always does
	Output  string // what it prints
	Code    int    // its exit code
}

const (
	playSuffix = ".play"
	seenSuffix = ".seen"
)

// seen is how a stub was started.
type seen struct {
	Args, Env []string
	Dir       string
	Stdin     []byte
	Files     [][]byte          // the inherited files from descriptor 3
	Tree      map[string][]byte // see tree
}

func main() {
	if slices.Equal(os.Args[1:], []string{"--version"}) {
		_, _ = os.Stdout.WriteString("1.2.3\n")
		return
	}
	s := seen{Args: os.Args[1:], Env: os.Environ(), Files: inherited()}
	var p play
	text, err := os.ReadFile(os.Args[0] + playSuffix)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		panic(err)
	}
	s.Dir, _ = os.Getwd()
	s.Tree = tree(filepath.Dir(filepath.Dir(os.Args[0])))
	if p.Session || slices.Contains(s.Args, "app-server") {
		s.Stdin = converse()
	} else {
		s.Stdin, _ = io.ReadAll(os.Stdin)
	}
	note, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(os.Args[0]+seenSuffix, note, 0o600)
	}
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(p.Output)
	os.Exit(p.Code)
}

// inherited returns the contents of the files that the process was started with.
func inherited() (contents [][]byte) {
	for fd := 3; ; fd++ {
		var stat syscall.Stat_t
		if syscall.Fstat(fd, &stat) != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
			return contents
		}
		content := make([]byte, stat.Size)
		n, _ := syscall.Pread(fd, content, 0)
		contents = append(contents, content[:max(n, 0)])
	}
}

// tree returns what is below root, without the folder of the stubs, by its path: the content
// of regular files, the target of links, and the mode of everything else.
func tree(root string) map[string][]byte {
	files := map[string][]byte{}
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case entry.IsDir() && name == filepath.Join(root, "bin"):
			return fs.SkipDir
		case entry.Type()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(name)
			files[name] = []byte("-> " + target + "\n")
		case entry.Type().IsRegular():
			files[name], _ = os.ReadFile(name)
		default:
			if info, err := entry.Info(); err == nil {
				files[name] = []byte(info.Mode().String() + "\n")
			}
		}
		return nil
	})
	return files
}

// replies are the results of requests of the protocols, by their method or type.
var replies = map[string]string{
	"initialize":      `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true}},"userAgent":"stub/1.2.3"}`,
	"session/new":     `{"sessionId":"` + resumed + `","models":{"currentModelId":"m-0","availableModels":[{"modelId":"m-0","name":"m-0"},{"modelId":"m-1","name":"m-1"}]},"configOptions":[{"id":"effort","name":"Effort","category":"thought_level","type":"select","currentValue":"low","options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]}]}`,
	"session/load":    `{"models":{"currentModelId":"m-0","availableModels":[{"modelId":"m-0","name":"m-0"},{"modelId":"m-1","name":"m-1"}]}}`,
	"thread/start":    `{"thread":{"id":"` + resumed + `"},"model":"m-0"}`,
	"thread/resume":   `{"thread":{"id":"` + resumed + `"},"model":"m-0"}`,
	"control_request": `{"commands":[],"models":[]}`,
}

// resumed is the ID of a session.
const resumed = "0199a213-81c0-7800-8aa1-bbab2a035a53"

// converse answers each request of a client until a message for the model arrives, and
// returns what the client sent.
func converse() (stdin []byte) {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		stdin = append(stdin, line...)
		var m struct {
			ID        json.RawMessage `json:"id"`
			Method    string          `json:"method"`
			Type      string          `json:"type"`
			RequestID string          `json:"request_id"`
		}
		_ = json.Unmarshal(line, &m)
		if err != nil || m.Type == "user" || m.Method == "session/prompt" || m.Method == "turn/start" {
			return stdin
		}
		reply, known := replies[m.Method+m.Type]
		if !known {
			reply = "{}"
		}
		switch {
		case m.Type == "control_request":
			reply = `{"type":"control_response","response":{"subtype":"success","request_id":"` + m.RequestID + `","response":` + reply + `}}`
		case m.ID != nil && m.Method != "":
			reply = `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + reply + `}`
		default:
			continue
		}
		_, _ = os.Stdout.WriteString(reply + "\n")
	}
}
