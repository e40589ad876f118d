package jsonline

// Members iterates over an object. The caller must reach its end before taking
// the next value of the enclosing array or object.
type Members struct {
	r     *Reader
	name  []byte
	depth int // inside the object; 0 when there is none
	begun bool
}

// Object begins an object. Null has no members.
func (r *Reader) Object() Members {
	if !r.enter('{') {
		return Members{}
	}
	return Members{r: r, depth: r.depth}
}

// Next goes to the next member and skips the value of the previous one if it
// was not taken. It reports false after the last one.
func (m *Members) Next() bool {
	r := m.r
	if m.depth == 0 {
		return false
	}
	if m.begun && r.depth == m.depth {
		if r.value {
			r.skip()
		}
		if m.plain() {
			return true
		}
	}
	if !r.next('}', m.depth, m.begun) {
		m.depth = 0
		return false
	}
	m.begun = true
	if r.space() != '"' {
		r.fail()
		return false
	}
	name := r.text()
	m.name = name.raw
	if name.escaped {
		m.name = name.Bytes()
	}
	if r.space() != ':' {
		r.fail()
		return false
	}
	r.pos++
	r.value = true
	return true
}

// plain goes to the next member if it is written as most are: a comma, a short
// name without escapes and a colon, with nothing between them.
func (m *Members) plain() bool {
	r := m.r
	b := r.line[r.pos:]
	if len(b) < 2+shortSize || b[0] != ',' || b[1] != '"' {
		return false
	}
	name := b[2:]
	n := firstSpecial(name)
	if n+1 >= shortSize || name[n] != '"' || name[n+1] != ':' {
		return false
	}
	m.name = name[:n:n]
	r.pos += len(`,"":`) + n
	r.value = true
	return true
}

// Name returns the name of the member, unescaped. Bytes in it that are not UTF-8
// are left as they are.
func (m *Members) Name() []byte { return m.name }

// Elements iterates over an array. The caller must reach its end before taking
// the next value of the enclosing array or object.
type Elements struct {
	r     *Reader
	depth int
	begun bool
}

// Array begins an array. Null has no elements.
func (r *Reader) Array() Elements {
	if !r.enter('[') {
		return Elements{}
	}
	return Elements{r: r, depth: r.depth}
}

// Next goes to the next element and skips the previous one if it was not
// taken. It reports false after the last one.
func (e *Elements) Next() bool {
	r := e.r
	if e.depth == 0 || !r.next(']', e.depth, e.begun) {
		e.depth = 0
		return false
	}
	e.begun = true
	if r.space() == 0 {
		r.fail()
		return false
	}
	r.value = true
	return true
}

// enter takes the bracket that begins an object or array.
func (r *Reader) enter(bracket byte) bool {
	if r.begin() != bracket {
		r.null()
		return false
	}
	r.pos++
	r.depth++
	if r.depth > maxDepth {
		r.fail()
		return false
	}
	return true
}

// next goes over what separates a member or element from the one before, and
// reports false at the bracket that ends them all, which it takes.
func (r *Reader) next(bracket byte, depth int, begun bool) bool {
	if r.depth != depth {
		r.fail()
	}
	if r.value {
		r.skip()
	}
	switch c := r.space(); {
	case r.failed:
		return false
	case c == bracket:
		r.pos++
		r.depth--
		return false
	case !begun:
		return true
	case c == ',':
		r.pos++
		return true
	}
	r.fail()
	return false
}
