package runner

import (
	"encoding/base64"
	"iter"
	"slices"
	"strings"
)

// A span is a part of a text.
type span struct{ from, to int }

// A finder looks for many needles at once, as they are and escaped.
//
// Needles as they are: the last bytes of a window, which is as long as the shortest
// needle, say how far the window can move before a needle can begin in it, so most
// bytes are never looked at. Needles with escapes: the first escape says which bytes
// of which needles can be meant, and what is before it is in the text as it is.
type finder struct {
	needles []string
	window  int
	shift   [buckets]uint8
	last    chains        // needles by the hash of the last bytes of the window
	begin   chains        // needles by their first byte
	pairs   [1 << 10]bool // the first two bytes of needles, hashed
	places  []place       // all bytes of all needles, by byte
	at      [257]int32    // where in places those of a byte begin
	meant   [256]bool     // whether a backslash before the character can be an escape in a needle
	barrier [256]bool     // whether the character can be nowhere in a needle or an escape
	most    int           // length of the longest
}

// A place is a byte of a needle.
type place struct{ needle, i int32 }

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
	f.last, f.begin = newChains(buckets, len(needles)), newChains(256, len(needles))
	var total [256]int32
	all := 0
	for number, n := range needles {
		f.window = min(f.window, len(n))
		f.most = max(f.most, len(n))
		all += len(n)
		f.begin.add(int(n[0]), number)
		f.pairs[pair(n[0], n[1])] = true
		for i := range len(n) {
			total[n[i]]++
		}
	}
	for c, count := range total {
		f.at[c+1] = f.at[c] + count
	}
	f.places = make([]place, all)
	filled := f.at
	for number, n := range needles {
		for i := range len(n) {
			f.places[filled[n[i]]] = place{int32(number), int32(i)}
			filled[n[i]]++
		}
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

// find returns where secrets are in text, from left to right. Those that overlap
// are one span.
func (f *finder) find(text string) (found []span) {
	for end := f.window; end <= len(text); {
		h := hash(text, end-block)
		skip := int(f.shift[h])
		if skip == 0 {
			from := end - f.window
			for number := range f.last.of(h) {
				if n := f.needles[number]; strings.HasPrefix(text[from:], n) {
					found = append(found, span{from, from + len(n)})
				}
			}
			skip = 1
		}
		end += skip
	}
	for e := 0; ; {
		next := strings.IndexByte(text[e:], '\\')
		if next < 0 {
			break
		}
		first := e + next
		for e = first + 1; e < len(text) && text[e] == '\\'; e++ {
		}
		if e == len(text) || !f.meant[text[e]] && !(e-first > 1 && f.meant['\\']) {
			continue
		}
		for at := first; at < e; at++ {
			found = f.findEscaped(found, text, at)
		}
	}
	for e := 0; ; e++ {
		next := strings.IndexByte(text[e:], '%')
		if next < 0 {
			break
		}
		e += next
		found = f.findEscaped(found, text, e)
	}
	return joined(found)
}

// findEscaped adds the secrets whose first escape is at e.
func (f *finder) findEscaped(found []span, text string, e int) []span {
	var buf [maxMeanings]meaning
	meanings, _ := decode(buf[:0], text, e)
	for i := range meanings {
		m := &meanings[i]
		for _, p := range f.places[f.at[m.bytes[0]]:f.at[int(m.bytes[0])+1]] {
			needle, i := f.needles[p.needle], int(p.i)
			if i > e || text[e-i:e] != needle[:i] || !strings.HasPrefix(needle[i:], m.text()) {
				continue
			}
			if to, _ := match(needle, i+m.n, text, m.next); to >= 0 {
				found = append(found, span{e - i, to})
			}
		}
	}
	return found
}

// joined sorts spans and joins those that overlap.
func joined(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	all := spans[:1]
	for _, s := range spans[1:] {
		if last := &all[len(all)-1]; s.from < last.to {
			last.to = max(last.to, s.to)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// settled returns where the first secret may begin that what follows text can
// complete or make longer, len(text) for none.
func (f *finder) settled(text string) int {
	for i := f.reach(text); i < len(text); i++ {
		c := text[i]
		if i+1 == len(text) || text[i+1] == '\\' || text[i+1] == '%' || f.pairs[pair(c, text[i+1])] {
			for number := range f.begin.of(int(c)) {
				if _, open := match(f.needles[number], 0, text, i); open {
					return i
				}
			}
		}
		if c != '\\' && c != '%' {
			continue
		}
		var buf [maxMeanings]meaning
		meanings, open := decode(buf[:0], text, i)
		if open {
			return i
		}
		for j := range meanings {
			m := &meanings[j]
			for number := range f.begin.of(int(m.bytes[0])) {
				n := f.needles[number]
				if !strings.HasPrefix(n, m.text()) {
					continue
				}
				if _, open := match(n, m.n, text, m.next); open {
					return i
				}
			}
		}
	}
	return len(text)
}

// reach returns from where on a needle can begin that ends behind text.
func (f *finder) reach(text string) int {
	const digits = 5 // of an escape, which are counted before the escape is seen
	most := f.most + digits
	i := len(text)
	for left := most; i > 0 && left > 0; { // bytes of the needle
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

// match returns where the rest of a needle from j on ends in text, which has it from
// i on, the latest of several possibilities, -1 for none. Open says that more text
// could make another.
func match(needle string, j int, text string, i int) (end int, open bool) {
	type state struct{ i, j int }
	end = -1
	var first [8]state
	states := append(first[:0], state{i, j})
	for next := 0; next < len(states); next++ {
		i, j := states[next].i, states[next].j
		for {
			if j == len(needle) {
				end = max(end, i)
				break
			}
			if i == len(text) {
				open = true
				break
			}
			c := text[i]
			if c == '\\' || c == '%' {
				var buf [maxMeanings]meaning
				meanings, more := decode(buf[:0], text, i)
				open = open || more
				for k := range meanings {
					m := &meanings[k]
					if s := (state{m.next, j + m.n}); strings.HasPrefix(needle[j:], m.text()) && !slices.Contains(states, s) {
						states = append(states, s)
					}
				}
			}
			if c != needle[j] {
				break
			}
			i, j = i+1, j+1
		}
	}
	return end, open
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
