package runner

// Mask returns text with "***" in place of every secret in environ, as in all
// texts of the runner. Secrets are the values of 8 bytes and more of variables
// whose name ends in _KEY, _TOKEN or _SECRET.
func Mask(environ []string, text string) string { return findSecrets(environ).mask(text) }
