package instructions

import (
	"bytes"
	"slices"

	"github.com/tailscale/hujson"
)

// removeFrom removes an entry from settings that were changed since: the string, and
// the list and objects made for it if they are empty.
func (e *entry) removeFrom(top *hujson.Value) {
	value := find(top, e.Keys)
	if value == nil {
		return
	}
	for depth := max(0, len(e.Keys)-e.Created); depth < len(e.Keys); depth++ {
		key, inner := e.Keys[depth], e.Keys[depth+1:]
		if isExactly(find(top, e.Keys[:depth+1]), e.list(inner)) {
			o := find(top, e.Keys[:depth]).Value.(*hujson.Object)
			removeMember(o, memberIndex(o, key))
			return
		}
	}
	list, ok := value.Value.(*hujson.Array)
	if !ok {
		return
	}
	removeElement(list, indexString(list, e.Value))
	if e.Wrapped && len(list.Elements) == 1 && value.IsStandard() {
		value.Value = list.Elements[0].Value
	}
}

// find returns the value at keys, or nil.
func find(top *hujson.Value, keys []string) *hujson.Value {
	if len(keys) == 0 {
		return top
	}
	value, _, _, err := lookup(top, keys)
	if err != nil {
		return nil
	}
	return value
}

// isExactly reports whether v is the JSON text, white space aside.
func isExactly(v *hujson.Value, text string) bool {
	want, err := hujson.Parse([]byte(text))
	if err != nil || !v.IsStandard() {
		return false
	}
	have := v.Clone()
	have.BeforeExtra, have.AfterExtra = nil, nil
	have.Minimize()
	want.Minimize()
	return bytes.Equal(have.Pack(), want.Pack())
}

// removeMember removes one member but no comment around it.
func removeMember(o *hujson.Object, i int) {
	m := o.Members[i]
	kept := comments(m.Name.BeforeExtra, m.Value.AfterExtra)
	o.Members = slices.Delete(o.Members, i, i+1)
	switch n := len(o.Members); {
	case i < n:
		o.Members[i].Name.BeforeExtra = append(kept, o.Members[i].Name.BeforeExtra...)
	case n > 0:
		o.AfterExtra = endWith(&o.Members[n-1].Value, m.Value, kept, o.AfterExtra)
	default:
		o.AfterExtra = append(kept, o.AfterExtra...)
	}
}

// removeElement is removeMember for arrays; a negative i removes nothing.
func removeElement(a *hujson.Array, i int) {
	if i < 0 {
		return
	}
	gone := a.Elements[i]
	kept := comments(gone.BeforeExtra, gone.AfterExtra)
	a.Elements = slices.Delete(a.Elements, i, i+1)
	switch n := len(a.Elements); {
	case i < n:
		a.Elements[i].BeforeExtra = append(kept, a.Elements[i].BeforeExtra...)
	case n > 0:
		a.AfterExtra = endWith(&a.Elements[n-1], gone, kept, a.AfterExtra)
	default:
		a.AfterExtra = append(kept, a.AfterExtra...)
	}
}

// endWith makes last the last element in place of gone, with a comma behind it
// only if gone had one, and returns what then is before the closing bracket.
func endWith(last *hujson.Value, gone hujson.Value, kept, tail hujson.Extra) hujson.Extra {
	if gone.AfterExtra != nil {
		last.AfterExtra = append(hujson.Extra{}, last.AfterExtra...)
	} else {
		kept = append(comments(last.AfterExtra), kept...)
		last.AfterExtra = nil
	}
	return append(kept, tail...)
}

// comments returns those of extras that have comments.
func comments(extras ...hujson.Extra) (kept hujson.Extra) {
	for _, x := range extras {
		if !x.IsStandard() {
			kept = append(kept, x...)
		}
	}
	return kept
}
