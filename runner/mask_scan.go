package runner

// A scan looks for the needles of a finder in a text that may grow, and follows every
// way to read it: each byte as it is and as the beginning of each escape it can be.
// Ways that have come to the same beginning of needles are one from there on. So a byte
// of text never costs more than a few steps for each byte of the needles, whatever the
// text is, and it is not looked at again when more text comes.
type scan struct {
	*finder
	pos   int     // where the text is done up to
	found []span  // from left to right, where those that overlap are one
	ways  [][]way // by the place where they continue, which is near
	open  int     // how many ways there are
	seen  []int32 // by node, a place in a list of ways
	gone  int     // bytes of the text that were dropped
}

// A span is a part of a text.
type span struct{ from, to int }

// A way has the beginning of a needle.
type way struct {
	at   int32 // a node
	from int   // where it began, before anything was dropped
}

// near is more than the bytes of the longest escape: two of \uXXXX with all their
// backslashes.
const near = 32

// run looks through what is new in text. Where it is not final, it stops at an escape
// that more text can make another.
func (s *scan) run(text string, final bool) {
	for ; s.pos < len(text); s.pos++ {
		if s.open == 0 {
			s.pos = s.skip(text, s.pos)
		}
		if !s.step(text, final) {
			return
		}
	}
}

// step continues all ways at pos and begins others. It returns false where more text
// is needed.
func (s *scan) step(text string, final bool) bool {
	c := text[s.pos]
	var buf [1 + maxMeanings]meaning
	meanings := append(buf[:0], meaning{[4]byte{c}, 1, s.pos + 1})
	begins := s.may(text, s.pos)
	if isEscape(c) {
		var open bool
		if meanings, open = decode(meanings, text, s.pos); open && !final {
			return false
		}
	}
	ways := s.arrived()
	for k := range meanings {
		m := &meanings[k]
		for _, w := range ways {
			s.follow(w, m)
		}
		if k > 0 || begins {
			s.follow(way{0, s.gone + s.pos}, m)
		}
	}
	return true
}

// arrived takes the ways that continue at pos, one for each node: that which began
// first.
func (s *scan) arrived() []way {
	if s.open == 0 {
		return nil
	}
	list := &s.ways[(s.gone+s.pos)%near]
	all := *list
	s.open -= len(all)
	*list = all[:0]
	if len(all) < 2 {
		return all
	}
	if s.seen == nil {
		s.seen = make([]int32, len(s.nodes))
	}
	kept := all[:0]
	for _, w := range all {
		seen := &s.seen[w.at]
		if k := int(*seen); k < len(kept) && kept[k].at == w.at {
			kept[k].from = min(kept[k].from, w.from)
			continue
		}
		*seen = int32(len(kept))
		kept = append(kept, w)
	}
	return kept
}

// follow continues a way where needles continue with what the text means.
func (s *scan) follow(w way, m *meaning) {
	for _, c := range m.bytes[:m.n] {
		if w.at = s.next(w.at, c); w.at == 0 {
			return
		}
	}
	n := &s.nodes[w.at]
	if n.whole {
		s.add(span{w.from - s.gone, m.next})
	}
	if n.child == 0 {
		return
	}
	if s.ways == nil {
		s.ways = make([][]way, near)
	}
	list := &s.ways[(s.gone+m.next)%near]
	*list = append(*list, w)
	s.open++
}

// add joins a span with those that it overlaps. It ends behind pos, so it is not
// before any of them.
func (s *scan) add(one span) {
	n := len(s.found)
	for ; n > 0 && one.from < s.found[n-1].to; n-- {
		one.from, one.to = min(one.from, s.found[n-1].from), max(one.to, s.found[n-1].to)
	}
	s.found = append(s.found[:n], one)
}

// settled returns where the first needle may begin that more text can complete, pos
// for none.
func (s *scan) settled() int {
	from := s.pos
	if s.open > 0 {
		for _, list := range s.ways {
			for _, w := range list {
				from = min(from, w.from-s.gone)
			}
		}
	}
	return from
}

// until returns what was found that begins before n.
func (s *scan) until(n int) []span {
	k := len(s.found)
	for k > 0 && s.found[k-1].from >= n {
		k--
	}
	return s.found[:k]
}

// drop makes the text begin at n, which nothing that is still to come begins before.
func (s *scan) drop(n int) {
	s.gone += n
	s.pos -= n
	kept := s.found[:0]
	for _, f := range s.found {
		if f.to > n {
			kept = append(kept, span{f.from - n, f.to - n})
		}
	}
	s.found = kept
}
