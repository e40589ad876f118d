package modeltest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// asides are what CLIs ask a model besides the conversation. Each begins a text of a role
// with words.
var asides = []struct{ role, words, reply string }{
	// Claude Code, whether a tool call is safe, in modes "auto" and "plan". All are, so that
	// what holds an agent back in a test is the agent and no luck with a model.
	{"system", "You are a security monitor for autonomous AI coding agents.", "<block>no</block>"},
	// claude-agent-acp 0.101.0 and codex-acp 2.6.0, for the title of a session.
	{"system", "You are naming a coding session", `{"title":"A session"}`},
	{"user", "Your task is to generate a very short title for a conversation", `{"title":"A session"}`},
}

// asideReply returns the reply to a request that asks aside, "" if it does not.
func asideReply(d dialect, r *Request) string {
	for _, a := range asides {
		if !bytes.Contains(r.Body, []byte(a.words)) {
			continue
		}
		c, err := d.parse(r)
		if err == nil && slices.ContainsFunc(c.messages, func(m Message) bool {
			return m.Role == a.role && slices.ContainsFunc(m.Texts, func(text string) bool { return strings.HasPrefix(text, a.words) })
		}) {
			return a.reply
		}
	}
	return ""
}

// answerAside answers what does not ask the model.
func (s *Server) answerAside(w http.ResponseWriter, r *Request) {
	if d := formOf(r); d != nil {
		a := d.answer(w, r, Usage{})
		a.text([]string{asideReply(d, r)})
		a.finish()
		return
	}
	_, method := generateTarget(r)
	switch {
	case r.Method == http.MethodGet && r.Header.Get("Upgrade") != "":
		// Codex speaks HTTP from here on; it would try any other status again.
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusUpgradeRequired)
	case r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/models"):
		sendJSON(w, s.openAIModels())
	case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/messages/count_tokens"):
		sendJSON(w, map[string]int{"input_tokens": tokens(r)})
	case r.Method == http.MethodPost && method == "countTokens":
		sendJSON(w, map[string]int{"totalTokens": tokens(r)})
	case r.Method == http.MethodPost && method == generateWhole:
		answerChoice(w, r, *choiceSchema(r))
	case r.Path == "/api/hello":
		sendJSON(w, map[string]string{"message": "hello"})
	case r.Method == http.MethodGet && r.Path == "/api/version":
		sendJSON(w, map[string]string{"version": "0.13.4"})
	case r.Method == http.MethodGet && r.Path == "/api/tags":
		sendJSON(w, s.ollamaModels())
	case r.Method == http.MethodPost && r.Path == "/api/pull":
		w.Header().Set("Content-Type", "application/x-ndjson")
		sendJSON(w, map[string]string{"status": "success"})
	case r.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		_, _ = w.Write([]byte("Ollama is running")) // a client that is gone needs no answer
	default:
		http.Error(w, "modeltest: no such path", http.StatusNotFound)
	}
}

// tokens is a rough count of the tokens of a request.
func tokens(r *Request) int { return len(r.Body)/4 + 1 }

// modelList is the list of models as OpenAI sends it. Codex asks the same path
// for a list with descriptions in models; an empty one leaves it its own.
type modelList struct {
	Object string       `json:"object"`
	Data   []modelEntry `json:"data"`
	Models []struct{}   `json:"models"`
}

type modelEntry struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	OwnedBy string `json:"owned_by"`
}

func (s *Server) openAIModels() modelList {
	list := modelList{Object: "list", Data: []modelEntry{}, Models: []struct{}{}}
	for _, name := range s.models {
		list.Data = append(list.Data, modelEntry{ID: name, Object: "model", OwnedBy: "modeltest"})
	}
	return list
}

// ollamaList is the list of models as Ollama sends it.
type ollamaList struct {
	Models []ollamaModel `json:"models"`
}

type ollamaModel struct {
	Name  string `json:"name"`
	Model string `json:"model"`
}

func (s *Server) ollamaModels() ollamaList {
	list := ollamaList{Models: []ollamaModel{}}
	for _, name := range s.models {
		list.Models = append(list.Models, ollamaModel{Name: name, Model: name})
	}
	return list
}

func sendJSON[T any](w http.ResponseWriter, document T) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	_ = json.NewEncoder(w).Encode(document) // a client that is gone needs no answer
}
