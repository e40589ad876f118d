package closeout

import "strings"

// A Plan is what a repository's PLAN.md had open before and after the work, as
// [OpenItems] returns it.
type Plan struct {
	Before, After []string
}

// closed returns the items that are not open any more.
func (p *Plan) closed() []string {
	left := map[string]int{}
	for _, item := range p.After {
		left[item]++
	}
	var closed []string
	for _, item := range p.Before {
		if left[item]--; left[item] < 0 {
			closed = append(closed, item)
		}
	}
	return closed
}

// OpenItems returns the unchecked items of a PLAN.md, "- [ ] text", without their marks.
// At most 10,000 are returned.
func OpenItems(text string) []string {
	const most = 10_000
	var items []string
	for row := range strings.Lines(text) {
		row = strings.TrimSpace(row)
		mark, item, ok := strings.Cut(row, "[ ]")
		if mark = strings.TrimSpace(mark); ok && isBullet(mark) && len(items) < most {
			items = append(items, strings.Join(strings.Fields(item), " "))
		}
	}
	return items
}

// isBullet reports whether mark begins an item of a list: "-", "*", "+" or "1.".
func isBullet(mark string) bool {
	if mark == "-" || mark == "*" || mark == "+" {
		return true
	}
	number := strings.TrimRight(mark, ".)")
	return len(number) == len(mark)-1 && number != "" && strings.Trim(number, "0123456789") == ""
}
