package sessiontest

import (
	"encoding/json"
	"strings"
)

// identify records the ID that the client uses for a request or a message of the script.
func (p *Peer) identify(script, real string) {
	s, r := open(script), open(real)
	switch {
	case s.method != "" && s.id != "" && r.id != "":
		p.ids[s.id] = r.id
	case s.kind == "control_request":
		p.ids[s.requestID] = r.requestID
	case s.uuid != "" && r.uuid != "":
		p.messages[s.uuid] = r.uuid
	}
}

// translate returns a line of the script with the client's ID in place of the
// script's where it answers a request of the client or names a message.
func (p *Peer) translate(line string) string {
	e := open(line)
	p.mu.Lock()
	defer p.mu.Unlock()
	for script, real := range p.messages {
		line = strings.ReplaceAll(line, `"`+script+`"`, `"`+real+`"`)
	}
	var id string
	var ok bool
	switch {
	case e.method == "" && e.id != "":
		id, ok = p.ids[e.id]
	case e.kind == "control_response":
		id, ok = p.ids[e.answers]
	}
	if !ok {
		return line
	}
	if e.id != "" {
		return replace(line, "id", json.RawMessage(id))
	}
	var outer struct {
		Response json.RawMessage `json:"response"`
	}
	if json.Unmarshal([]byte(line), &outer) != nil {
		return line
	}
	quoted, err := json.Marshal(id)
	if err != nil {
		return line
	}
	return replace(line, "response", json.RawMessage(replace(string(outer.Response), "request_id", quoted)))
}

// replace sets a member of an object. The order of members does not last.
func replace(object, name string, value json.RawMessage) string {
	members := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(object), &members) != nil {
		return object
	}
	members[name] = value
	replaced, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return string(replaced)
}
