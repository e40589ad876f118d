package appserver

// SetMaxLine sets what is a long line, in bytes.
func (e *Engine) SetMaxLine(size int) { e.maxLine = size }

// ConnectWith is Connect with another longest line, in bytes.
var ConnectWith = connect
