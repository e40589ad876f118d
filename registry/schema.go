package registry

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// SchemaRules says which JSON Schemas a CLI and its model accept. Models accept a
// part of the standard and refuse the request otherwise. These rules always hold:
// the schema is an object with "type": "object", each $ref is "#" or begins with
// "#/", property names are up to 64 ASCII letters, digits and "_.-", and format is
// a common one.
type SchemaRules struct {
	// Keywords are those that a schema may have. $schema is always allowed, and left out
	// of what [BareSchema] returns.
	Keywords []string

	// NotAtTop are those of them that the schema at the top may not have.
	NotAtTop []string

	// Closed says that each object must list all its properties as required and
	// allow no others.
	Closed bool

	// MaxBytes bounds the length of a schema, MaxDepth its nesting.
	// Zero means no bound.
	MaxBytes int
	MaxDepth int
}

// formats are the values of format that models know.
var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// Takes reports whether schema follows the rules.
func (r *SchemaRules) Takes(schema json.RawMessage) bool {
	if r.MaxBytes > 0 && len(schema) > r.MaxBytes {
		return false
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(schema, &top) != nil || string(bytes.TrimSpace(top["type"])) != `"object"` {
		return false
	}
	delete(top, "$schema")
	for _, name := range r.NotAtTop {
		if _, there := top[name]; there {
			return false
		}
	}
	return r.object(top, 1)
}

func (r *SchemaRules) schema(raw json.RawMessage, depth int) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && object != nil && r.object(object, depth)
}

func (r *SchemaRules) object(object map[string]json.RawMessage, depth int) bool {
	if r.MaxDepth > 0 && depth > r.MaxDepth {
		return false
	}
	for name, value := range object {
		if !slices.Contains(r.Keywords, name) || !r.keyword(name, value, depth) {
			return false
		}
	}
	return !r.Closed || closed(object)
}

func (r *SchemaRules) keyword(name string, value json.RawMessage, depth int) bool {
	switch name {
	case "properties", "$defs", "definitions":
		var list map[string]json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return false
		}
		for key, below := range list {
			if !isPlain(key) || !r.schema(below, depth+1) {
				return false
			}
		}
	case "anyOf", "oneOf", "allOf":
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return false
		}
		for _, below := range list {
			if !r.schema(below, depth+1) {
				return false
			}
		}
	case "items", "not":
		return r.schema(value, depth+1)
	case "additionalProperties":
		var open bool
		return json.Unmarshal(value, &open) == nil || r.schema(value, depth+1)
	case "$ref":
		text, ok := asText(value)
		return ok && (text == "#" || strings.HasPrefix(text, "#/"))
	case "format":
		text, ok := asText(value)
		return ok && slices.Contains(formats, text)
	}
	return true
}

// closed reports whether an object that the schema describes has exactly the
// properties that it names. What describes no object is closed.
func closed(object map[string]json.RawMessage) bool {
	_, described := object["properties"]
	var one string
	var several []string
	_ = json.Unmarshal(object["type"], &one) // it is a name or a list of names
	_ = json.Unmarshal(object["type"], &several)
	if !described && one != "object" && !slices.Contains(several, "object") {
		return true
	}
	var properties map[string]json.RawMessage
	var required []string
	if json.Unmarshal(object["properties"], &properties) != nil || json.Unmarshal(object["required"], &required) != nil {
		return false
	}
	for name := range properties {
		if !slices.Contains(required, name) {
			return false
		}
	}
	return string(object["additionalProperties"]) == "false"
}

func isPlain(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == ""
}

func asText(raw json.RawMessage) (text string, ok bool) {
	return text, json.Unmarshal(raw, &text) == nil
}

// BareSchema returns schema without $schema and white space, its members in their
// order: models write the members of an object in the order of its schema. Schemas
// that follow [SchemaRules] mean the same in all drafts, and CLIs refuse the name of
// a draft that they do not know. Nil when it is not a JSON object.
func BareSchema(schema json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(schema))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	out := []byte{'{'}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return nil
		}
		if name == "$schema" {
			continue
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, append(out, '}')) != nil {
		return nil
	}
	return compact.Bytes()
}
