package acp

// SetMaxLine sets what is a long line, in bytes.
func (e *Engine) SetMaxLine(size int) { e.maxLine = size }
