package runner

import "encoding/base64"

// A finder holds the needles that a [scan] looks for as a tree of their beginnings.
type finder struct {
	nodes []node        // the empty beginning first
	begin [256]int32    // the nodes of the first bytes
	pairs [1 << 12]bool // whether a needle may begin with two bytes, by their hash
}

// A node is a beginning of needles.
type node struct {
	child, sibling int32 // those that have a byte more, 0 for none
	c              byte  // the last byte
	whole          bool  // whether it is a needle
}

func newFinder(needles []string) *finder {
	size := 1
	for _, n := range needles {
		size += len(n)
	}
	f := &finder{nodes: make([]node, 1, size)}
	for _, n := range needles {
		f.pairs[pair(n[0], n[1])] = true
		at := int32(0)
		for i := range len(n) {
			next := f.next(at, n[i])
			if next == 0 {
				next = int32(len(f.nodes))
				f.nodes = append(f.nodes, node{sibling: f.nodes[at].child, c: n[i]})
				f.nodes[at].child = next
				if at == 0 {
					f.begin[n[i]] = next
				}
			}
			at = next
		}
		f.nodes[at].whole = true
	}
	return f
}

// next returns the beginning that has c too, 0 for none.
func (f *finder) next(at int32, c byte) int32 {
	if at == 0 {
		return f.begin[c]
	}
	for at = f.nodes[at].child; at != 0 && f.nodes[at].c != c; {
		at = f.nodes[at].sibling
	}
	return at
}

func pair(first, second byte) int { return int(first)<<4 ^ int(second) }

// skip returns the first place from which on a needle or an escape may begin.
func (f *finder) skip(text string, from int) int {
	for i := from; i+1 < len(text); i++ {
		if c, next := text[i], text[i+1]; f.pairs[pair(c, next)] || isEscape(c) || isEscape(next) {
			if f.may(text, i) {
				return i
			}
		}
	}
	return max(from, len(text)-1)
}

// may reports whether a needle may begin at i, by the next few bytes.
func (f *finder) may(text string, i int) bool {
	if text[i] == '\\' && i+1 < len(text) && f.begin['\\'] == 0 {
		if c := text[i+1]; c != '\\' && c != 'u' {
			return f.begin[escaped(c)] != 0
		}
	}
	at := int32(0)
	for _, c := range []byte(text[i:min(i+4, len(text))]) {
		if isEscape(c) {
			return true
		}
		if at = f.next(at, c); at == 0 {
			return false
		}
	}
	return true
}

func isEscape(c byte) bool { return c == '\\' || c == '%' }

// base64Forms returns what every base64 of a text that holds the value has of it,
// wherever the value begins: the characters that hold no bits of other bytes.
func base64Forms(value string) (forms []string) {
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			encoded := encoding.EncodeToString([]byte("\x00\x00"[:before] + value))
			from := (8*before + 5) / 6
			to := 8 * (before + len(value)) / 6
			forms = append(forms, encoded[from:to])
		}
	}
	return forms
}
