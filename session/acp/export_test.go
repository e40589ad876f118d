package acp

// SetMaxLine sets what is a long line, in bytes.
func (e *Engine) SetMaxLine(size int) { e.maxLine = size }

// Opened reports whether the approval request with an ID is open.
func (e *Engine) Opened(id string) bool {
	_, open := e.approvals.Peek(id)
	return open
}
