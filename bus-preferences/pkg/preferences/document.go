package preferences

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
)

const currentVersion = 1

// A document is the content of a preferences file. All values are canonical.
type document struct {
	version int
	values  map[string]json.RawMessage
	others  map[string]json.RawMessage // other top-level members
}

// parseDocument parses the content of a file. An empty file, such as one made by
// mktemp, is an empty document. All errors wrap [ErrMalformed].
func parseDocument(data []byte) (*document, error) {
	doc := &document{version: currentVersion, values: make(map[string]json.RawMessage)}
	if len(bytes.TrimSpace(data)) == 0 {
		return doc, nil
	}
	raw, err := canonical(data, maxDepth+2)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if doc.others, err = members(raw); err != nil {
		return nil, fmt.Errorf("%w: the file %w", ErrMalformed, err)
	}
	if version, ok := doc.others["version"]; ok {
		if doc.version, err = strconv.Atoi(string(version)); err != nil {
			return nil, fmt.Errorf(`%w: "version" is not a whole number`, ErrMalformed)
		}
		delete(doc.others, "version")
	}
	if values, ok := doc.others["values"]; ok {
		if doc.values, err = members(values); err != nil {
			return nil, fmt.Errorf(`%w: "values" %w`, ErrMalformed, err)
		}
		delete(doc.others, "values")
	}
	return doc, nil
}

func members(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if raw[0] != '{' {
		return nil, errors.New("is not a JSON object")
	}
	var m map[string]json.RawMessage
	err := json.Unmarshal(raw, &m)
	return m, err
}

// encode returns the content of the file, whose version must be the current one.
func (d *document) encode() ([]byte, error) {
	if d.version != currentVersion {
		return nil, fmt.Errorf("%w: it is %d, and this program supports %d; update the program",
			ErrUnknownVersion, d.version, currentVersion)
	}
	values, err := appendMembers(nil, d.values)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(d.others)
	if all == nil {
		all = make(map[string]json.RawMessage)
	}
	all["version"] = json.RawMessage(strconv.Itoa(d.version))
	all["values"] = values
	raw, err := appendMembers(nil, all)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
