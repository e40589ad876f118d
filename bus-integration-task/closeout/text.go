package closeout

import (
	"reflect"
	"strings"
	"unicode"
)

// each replaces every string below the pointer v by change of it.
func each(v any, change func(string) string) { eachValue(reflect.ValueOf(v).Elem(), change) }

func eachValue(v reflect.Value, change func(string) string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(change(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				eachValue(v.Field(i), change)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachValue(v.Index(i), change)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachValue(v.Elem(), change)
		}
	}
}

// line returns text as one printable line.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '�'
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
