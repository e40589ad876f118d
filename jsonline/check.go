package jsonline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Decode stores the one JSON value in data in what to points to, as json.Unmarshal does,
// but refuses unknown and repeated members. The error says what is wrong for a person who
// wrote data, and names no Go type.
func Decode(data []byte, to any) error {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if err := CheckNames(data, nil); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is not of the right type", cmp.Or(wrong.Field, "it"))
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// CheckNames returns an error for the first name in data, at any depth, that its object has
// before, or else the error of check for it. A nil check refuses none. Data must be JSON:
// what follows an error in it is not checked.
func CheckNames(data []byte, check func(name string) error) error {
	r := New(data)
	return r.checkNames(check)
}

// checkNames takes a value.
func (r *Reader) checkNames(check func(string) error) error {
	switch r.Kind() {
	case Object:
		seen := map[string]bool{}
		for m := r.Object(); m.Next(); {
			name := strings.ToValidUTF8(string(m.Name()), "\ufffd") // as encoding/json reads it
			if seen[name] {
				return fmt.Errorf("member %q is repeated", name)
			}
			seen[name] = true
			if check != nil {
				if err := check(name); err != nil {
					return err
				}
			}
			if err := r.checkNames(check); err != nil {
				return err
			}
		}
	case Array:
		for e := r.Array(); e.Next(); {
			if err := r.checkNames(check); err != nil {
				return err
			}
		}
	default:
		r.skip()
	}
	return nil
}
