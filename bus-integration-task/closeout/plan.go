package closeout

import "strings"

// A Plan is the PLAN.md of a repository before and after the work.
type Plan struct {
	Before, After Items
}

// Items are the items of a PLAN.md, as [PlanItems] returns them. The zero value is that
// of a repository without one.
type Items struct {
	Exists  bool // as a regular file
	Open    []string
	Checked []string
}

// closed returns the items that were open and are not any more: they are checked, or they
// are gone from a file that has no new open item, which could be the same one in other
// words.
func (p *Plan) closed() []string {
	open, checked := count(p.After.Open), count(p.After.Checked)
	for _, item := range p.Before.Checked {
		checked[item]--
	}
	var gone, closed []string
	for _, item := range p.Before.Open {
		switch {
		case open[item] > 0:
			open[item]--
		case checked[item] > 0:
			checked[item]--
			closed = append(closed, item)
		default:
			gone = append(gone, item)
		}
	}
	added := 0
	for _, n := range open {
		added += n
	}
	if p.After.Exists && added == 0 {
		closed = append(closed, gone...)
	}
	return closed
}

func count(items []string) map[string]int {
	n := map[string]int{}
	for _, item := range items {
		n[item]++
	}
	return n
}

// PlanItems returns the items of a PLAN.md, "- [ ] text" and "- [x] text", without their
// marks. At most 10,000 of each are returned.
func PlanItems(text string) Items {
	const most = 10_000
	items := Items{Exists: true}
	for row := range strings.Lines(text) {
		row = strings.TrimSpace(row)
		for _, kind := range []struct {
			box  string
			list *[]string
		}{{"[ ]", &items.Open}, {"[x]", &items.Checked}, {"[X]", &items.Checked}} {
			mark, item, ok := strings.Cut(row, kind.box)
			if mark = strings.TrimSpace(mark); ok && isBullet(mark) && len(*kind.list) < most {
				*kind.list = append(*kind.list, strings.Join(strings.Fields(item), " "))
			}
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
