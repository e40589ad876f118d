package jsonline

// Members goes through an object. It is gone through to its end before the next
// value of what holds it is asked for.
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

// Next goes to the next member, over the value of the one before unless it was
// taken. It reports false after the last one.
func (m *Members) Next() bool {
	r := m.r
	if m.depth == 0 || !r.next('}', m.depth, m.begun) {
		m.depth = 0
		return false
	}
	m.begun = true
	if r.space() != '"' {
		r.fail()
		return false
	}
	name := r.text()
	if r.space() != ':' {
		r.fail()
		return false
	}
	r.pos++
	r.value = true
	m.name = name.Bytes()
	return true
}

// Name returns the name of the member, unescaped.
func (m *Members) Name() []byte { return m.name }

// Elements goes through an array. It is gone through to its end before the next
// value of what holds it is asked for.
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

// Next goes to the next element, over the one before unless it was taken. It
// reports false after the last one.
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
