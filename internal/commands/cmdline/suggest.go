package cmdline

// Hint suggests the name that word may be a slip of, after a semicolon.
func Hint(names []string, word string) string {
	if similar := closest(word, names); similar != "" {
		return "; did you mean " + Quote(similar) + "?"
	}
	return ""
}

// closest returns the name that word may be a slip of, "" for none. The suggestions of
// urfave/cli cannot be used: it suggests a name even if none is similar.
func closest(word string, names []string) (best string) {
	const longest = 100
	if len(word) > longest {
		return ""
	}
	least := max(1, len(word)/3) + 1
	for _, name := range names {
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance returns how many letters must be inserted, removed, replaced or swapped with
// the next one to turn a into b.
func distance(a, b string) int {
	var above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			next[j+1] = min(row[j+1], next[j]) + 1
			if a[i] == b[j] {
				next[j+1] = min(next[j+1], row[j])
			} else {
				next[j+1] = min(next[j+1], row[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], above[j-1]+1)
			}
		}
		above, row = row, next
	}
	return row[len(b)]
}
