package sessiontest

import (
	"encoding/json"
)

// identify takes note of the ID that the client uses for a request of the script.
func (p *Peer) identify(script, real string) {
	s, r := open(script), open(real)
	switch {
	case s.Method != "" && s.ID != nil && r.ID != nil:
		p.ids[string(s.ID)] = string(r.ID)
	case s.Type == "control_request":
		p.ids[s.RequestID] = r.RequestID
	}
}

// translate returns a line of the script with the client's ID in place of the
// script's where it answers a request of the client.
func (p *Peer) translate(line string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := open(line)
	var id string
	var ok bool
	switch {
	case e.Method == "" && e.ID != nil:
		id, ok = p.ids[string(e.ID)]
	case e.Type == "control_response":
		id, ok = p.ids[e.Response.RequestID]
	}
	if !ok {
		return line
	}
	if e.ID != nil {
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
