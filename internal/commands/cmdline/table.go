package cmdline

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// A Table is text in columns. The zero value is an empty table.
type Table struct{ b strings.Builder }

// Table returns a table whose header is shown where the results go to a terminal: a
// program that reads the table needs none.
func (prog *Program) Table(header ...string) *Table {
	t := new(Table)
	if prog.Env.Terminal.Stdout && prog.Global.Output == "" {
		t.Row(header...)
	}
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) { fmt.Fprintln(&t.b, strings.Join(cells, "\t")) }

// Field adds a row with a name and a value, unless the value is empty.
func (t *Table) Field(name, value string) {
	if value != "" {
		t.Row(name+":", Printable(value))
	}
}

// Time adds a row with a name and a time, unless the time is zero.
func (t *Table) Time(name string, when time.Time) {
	if !when.IsZero() {
		t.Field(name, when.Local().Format(time.DateTime))
	}
}

// String returns the rows with their columns aligned.
func (t *Table) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, t.b.String())
	w.Flush()
	return out.String()
}
