package events

// TokenFileWithin is TokenFile with another limit of the wait.
var TokenFileWithin = tokenFile
