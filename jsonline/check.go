package jsonline

import (
	"fmt"
	"strings"
)

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
