package delegation

// IgnoreAncestors makes brokers of this process ignore the bounds of its ancestors.
func IgnoreAncestors() { ancestorValues = func(string) []string { return nil } }
