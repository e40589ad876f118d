package jsonline

// nesting remembers, level by level, which brackets are open: a bit each, 1 for
// an object.
type nesting struct {
	top  uint64   // the last up to 64 levels
	rest []uint64 // those before, 64 each
	n    int
}

func (s *nesting) push(object bool) {
	if s.n > 0 && s.n%64 == 0 {
		s.rest = append(s.rest, s.top)
	}
	s.top <<= 1
	if object {
		s.top |= 1
	}
	s.n++
}

func (s *nesting) pop() {
	s.top >>= 1
	s.n--
	if s.n > 0 && s.n%64 == 0 {
		s.top = s.rest[len(s.rest)-1]
		s.rest = s.rest[:len(s.rest)-1]
	}
}

func (s *nesting) object() bool { return s.top&1 != 0 }

// skipValue returns the index after the value at i, which is nested depth deep,
// -1 if there is none.
func skipValue(b []byte, i, depth int) int {
	var open nesting
	for {
		// A value begins here.
		if i = spaces(b, i); i >= len(b) {
			return -1
		}
		empty := false
		switch c := b[i]; {
		case c == '"':
			if i, _ = scanString(b, i+1); i < 0 {
				return -1
			}
			i++
		case c == '{', c == '[':
			if depth+open.n >= maxDepth {
				return -1
			}
			open.push(c == '{')
			if i = spaces(b, i+1); i >= len(b) {
				return -1
			}
			if b[i] != c+2 { // the bracket that closes it
				if c == '{' {
					if i = skipName(b, i); i < 0 {
						return -1
					}
				}
				continue
			}
			empty = true
		case c == 't':
			i = word(b, i, "true")
		case c == 'f':
			i = word(b, i, "false")
		case c == 'n':
			i = word(b, i, "null")
		default:
			i = scanNumber(b, i)
		}
		if i < 0 {
			return -1
		}
		// It has ended, and perhaps what holds it.
		for {
			if open.n == 0 {
				return i
			}
			if !empty {
				if i = spaces(b, i); i >= len(b) {
					return -1
				}
			}
			empty = false
			c := b[i]
			i++
			if c == ',' {
				if open.object() {
					if i = skipName(b, spaces(b, i)); i < 0 {
						return -1
					}
				}
				break
			}
			if c == '}' && open.object() || c == ']' && !open.object() {
				open.pop()
				continue
			}
			return -1
		}
	}
}

// skipName returns the index after the name at i and its colon.
func skipName(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	if i, _ = scanString(b, i+1); i < 0 {
		return -1
	}
	if i = spaces(b, i+1); i >= len(b) || b[i] != ':' {
		return -1
	}
	return i + 1
}

// spaces returns the index of the first byte at i or after it that is not white
// space.
func spaces(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

func word(b []byte, i int, w string) int {
	if len(b)-i < len(w) || string(b[i:i+len(w)]) != w {
		return -1
	}
	return i + len(w)
}
