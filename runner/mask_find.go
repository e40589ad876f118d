package runner

import (
	"encoding/base64"
	"iter"
	"strings"
)

// A finder looks for many needles at once, as they are and escaped.
//
// It says where a needle may begin, and a [scan] follows it from there. Needles as they
// are: the last bytes of a window, which is as long as the shortest needle, say how far
// the window can move before a needle can begin in it, so most bytes are never looked
// at. Needles with escapes: the first escape says which bytes of which needles can be
// meant, and what is before it is in the text as it is.
type finder struct {
	needles []string
	window  int
	shift   [buckets]uint8
	last    chains        // needles by the hash of the last bytes of the window
	nodes   []node        // the beginnings of needles as a tree, the empty one first
	begin   [256]int32    // the nodes of their first bytes
	pairs   [1 << 10]bool // the first two bytes of needles, hashed
	places  []place       // a byte for each node, by byte
	at      [257]int32    // where in places those of a byte begin
	meant   [256]bool     // whether a backslash before the character can be an escape in a needle
	barrier [256]bool     // whether the character can be nowhere in a needle or an escape
	most    int           // length of the longest
}

// A place is a byte of a needle.
type place struct{ needle, i int32 }

// A node is a beginning of needles.
type node struct {
	child, sibling int32 // those that have a byte more, 0 for none
	c              byte  // the last byte
	whole          bool  // whether it is a needle
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

// chains are lists of needles.
type chains struct {
	first []int32 // by key, the number of a needle and one
	next  []int32 // by number
}

func newChains(keys, needles int) chains {
	return chains{make([]int32, keys), make([]int32, needles)}
}

func (c *chains) add(key, needle int) {
	c.next[needle] = c.first[key]
	c.first[key] = int32(needle + 1)
}

// of returns the needles of a key.
func (c *chains) of(key int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := c.first[key]; n != 0 && yield(int(n-1)); n = c.next[n-1] {
		}
	}
}

const (
	block     = 3 // bytes that are hashed
	buckets   = 1 << 12
	maxWindow = 24
)

func hash(text string, i int) int {
	return int((uint32(text[i])*0x9E5 ^ uint32(text[i+1])*0x3B1D ^ uint32(text[i+2])*0x61) % buckets)
}

func pair(first, second byte) int { return (int(first)*37 ^ int(second)) % (1 << 10) }

func (f *finder) prepare(needles []string) {
	f.needles = needles
	f.window = maxWindow
	f.last = newChains(buckets, len(needles))
	all := 1
	for _, n := range needles {
		all += len(n)
	}
	f.nodes = make([]node, 1, all)
	places := make([]place, 1, all) // by node
	var total [256]int32
	for number, n := range needles {
		f.window = min(f.window, len(n))
		f.most = max(f.most, len(n))
		f.pairs[pair(n[0], n[1])] = true
		at := int32(0)
		for i := range len(n) {
			next := f.next(at, n[i])
			if next == 0 {
				next = int32(len(f.nodes))
				f.nodes = append(f.nodes, node{0, f.nodes[at].child, n[i], false})
				f.nodes[at].child = next
				if at == 0 {
					f.begin[n[i]] = next
				}
				places = append(places, place{int32(number), int32(i)})
				total[n[i]]++
			}
			at = next
		}
		f.nodes[at].whole = true
	}
	for c, count := range total {
		f.at[c+1] = f.at[c] + count
	}
	f.places = make([]place, len(places)-1)
	filled := f.at
	for at, p := range places[1:] {
		c := f.nodes[at+1].c
		f.places[filled[c]] = p
		filled[c]++
	}
	for c := range f.meant {
		b := escaped(byte(c))
		f.meant[c] = c == 'u' || b != 0 && total[b] > 0
		f.barrier[c] = total[c] == 0 && !strings.ContainsRune(`\%"/'`, rune(c)) && !isLetterOrDigit(byte(c))
	}
	f.meant['\\'] = total['\\'] > 0
	far := f.window - block + 1
	for i := range f.shift {
		f.shift[i] = uint8(far)
	}
	for number, n := range needles {
		for i := 0; i+block <= f.window; i++ {
			h := hash(n, i)
			f.shift[h] = min(f.shift[h], uint8(f.window-block-i))
		}
		f.last.add(hash(n, f.window-block), number)
	}
}

func isLetterOrDigit(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// plain returns the first place from which on text has a needle as it is, len(text)
// for none.
func (f *finder) plain(text string, from int) int {
	for end := from + f.window; end <= len(text); {
		h := hash(text, end-block)
		skip := int(f.shift[h])
		if skip == 0 {
			for number := range f.last.of(h) {
				if at := end - f.window; strings.HasPrefix(text[at:], f.needles[number]) {
					return at
				}
			}
			skip = 1
		}
		end += skip
	}
	return len(text)
}

// nearby is how much of what is before an escape is compared before ways are followed.
const nearby = 8

// before returns from where on a needle may reach that has its first escape at e, -1
// for none.
func (f *finder) before(text string, e int) int {
	from := -1
	var buf [maxMeanings]meaning
	meanings, _ := decode(buf[:0], text, e)
	for k := range meanings {
		m := &meanings[k]
		for _, p := range f.places[f.at[m.bytes[0]]:f.at[int(m.bytes[0])+1]] {
			needle, i := f.needles[p.needle], int(p.i)
			if i <= e && strings.HasSuffix(text[:e], needle[max(0, i-nearby):i]) && strings.HasPrefix(needle[i:], m.text()) && (from < 0 || e-i < from) {
				from = e - i
			}
		}
	}
	return from
}

// reach returns from where on a needle can begin that ends behind text, first or
// behind it.
func (f *finder) reach(text string, first int) int {
	const digits = 5 // of an escape, which are counted before the escape is seen
	most := f.most + digits
	i := len(text)
	for left := most; i > first && left > 0; { // bytes of the needle
		i--
		switch {
		case f.barrier[text[i]]:
			return i + 1
		case text[i] == '%':
			left = min(left+1, most)
		case text[i] != '\\':
			left--
		case i+1 < len(text) && text[i+1] == 'u':
			left = min(left+digits-1, most)
		}
	}
	return i
}

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
