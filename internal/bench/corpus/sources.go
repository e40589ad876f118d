package corpus

// What tools print and models say. Two characters, ^[, stand for the escape
// character and the bracket after it.

const goSource = `
package inventory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// ErrNotFound is returned when no item has the given number.
var ErrNotFound = errors.New("inventory: no such item")

const selectItem = "SELECT \"number\", \"name\", \"price\", \"updated\" FROM \"items\" WHERE \"number\" = $1"

type Item struct {
	Number  int64             ` + "`json:\"number\"`" + `
	Name    string            ` + "`json:\"name\" validate:\"required,max=200\"`" + `
	Price   Money             ` + "`json:\"price\"`" + ` // in the currency's smallest unit
	Labels  map[string]string ` + "`json:\"labels,omitempty\"`" + `
	Updated time.Time         ` + "`json:\"updated\"`" + `
}

// Find looks an item up. The context bounds the query; a missing item is
// ErrNotFound, anything else is wrapped with the number that was asked for.
func (s *Store) Find(ctx context.Context, number int64) (*Item, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()

	var item Item
	row := s.db.QueryRowContext(ctx, selectItem, number)
	switch err := row.Scan(&item.Number, &item.Name, &item.Price, &item.Updated); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("finding item %d: %w", number, err)
	}
	if strings.HasPrefix(item.Name, "\\") || strings.ContainsAny(item.Name, "<>&\"'\t\r\n") {
		s.log.WarnContext(ctx, "suspicious name", slog.Int64("number", number), slog.String("name", item.Name))
	}
	return &item, nil
}

func (s *Store) Each(ctx context.Context, visit func(*Item) error) (err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT \"number\" FROM \"items\" ORDER BY \"name\" COLLATE \"fi-FI\"")
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var number int64
		if err := rows.Scan(&number); err != nil {
			return err
		}
		item, err := s.Find(ctx, number)
		if errors.Is(err, ErrNotFound) { // it was deleted in the meantime
			continue
		}
		if err != nil {
			return err
		}
		if err := visit(item); err != nil {
			return fmt.Errorf("item %d (%q): %w", item.Number, item.Name, err)
		}
	}
	return rows.Err()
}

// Format writes 1234567 as "12 345,67 €", the way invoices show it.
func (m Money) Format() string {
	whole, rest := m/100, m%100
	digits := fmt.Sprintf("%d", whole)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u00a0')
		}
		b.WriteRune(d)
	}
	return fmt.Sprintf("%s,%02d €", b.String(), rest)
}
`

const scriptSource = `
import { useEffect, useMemo, useState } from "react";
import type { Invoice, Customer } from "../types";

export const currency = new Intl.NumberFormat("fi-FI", { style: "currency", currency: "EUR" });

interface Props {
  customer: Customer;
  onSelect?: (invoice: Invoice) => void;
}

export function InvoiceList({ customer, onSelect }: Props) {
  const [invoices, setInvoices] = useState<Invoice[]>([]);
  const [error, setError] = useState<string | null>(null);

  useEffect(() => {
    const controller = new AbortController();
    fetch("/api/customers/" + customer.id + "/invoices?sort=-date", { signal: controller.signal })
      .then((r) => (r.ok ? r.json() : Promise.reject(new Error("HTTP " + r.status))))
      .then(setInvoices)
      .catch((e) => e.name !== "AbortError" && setError("Laskuja ei voitu hakea: " + e.message));
    return () => controller.abort();
  }, [customer.id]);

  const total = useMemo(() => invoices.reduce((sum, i) => sum + i.amount, 0), [invoices]);
  if (error) return <p className="error" role="alert">⚠️ {error}</p>;
  return (
    <section aria-label={"Laskut – " + customer.name}>
      <h2>{customer.name} <small>({invoices.length} kpl)</small></h2>
      <ul>
        {invoices.map((i) => (
          <li key={i.id} onClick={() => onSelect?.(i)} className={i.paid ? "paid" : "open"}>
            {i.date.replace(/^(\d{4})-(\d{2})-(\d{2})$/, "$3.$2.$1")} · {currency.format(i.amount / 100)}
          </li>
        ))}
      </ul>
      <footer>Yhteensä: {currency.format(total / 100)}</footer>
    </section>
  );
}
`

const testOutput = `
=== RUN   TestFind
=== RUN   TestFind/an_item_that_is_there
=== RUN   TestFind/no_such_item
^[32m--- PASS: TestFind (0.01s)^[0m
^[32m    --- PASS: TestFind/an_item_that_is_there (0.00s)^[0m
^[31m    --- FAIL: TestFind/no_such_item (0.00s)^[0m
        store_test.go:88: Find(42) = <nil>, "finding item 42: context deadline exceeded"; want "inventory: no such item"
        store_test.go:91: (-want +got):
              &inventory.Item{
            - 	Name: "Päivänsäde",
            + 	Name: "Pa\u0308iva\u0308nsa\u0308de",
              	Price: 1234567,
              }
panic: runtime error: invalid memory address or nil pointer dereference [recovered]
[signal SIGSEGV: segmentation violation code=0x1 addr=0x18 pc=0x6f2b1c]
goroutine 41 [running]:
example.com/shop/inventory.(*Store).Find(0xc0001a2000, {0x8c1f80, 0xc00019c0f0}, 0x2a)
	/srv/project/work/inventory/store.go:41 +0x1bc
FAIL	example.com/shop/inventory	0.412s
ok  	example.com/shop/money	0.018s	coverage: 92.3% of statements
?   	example.com/shop/cmd/shop	[no test files]
^[1m^[33mwarning^[0m: unused variable: ^[1mresult^[0m
  ^[1m^[34m-->^[0m src/main.rs:14:9
^[2m2026-11-21T00:25:10.881Z^[0m ^[36mINFO^[0m request{method=GET path="/api/items/42"} status=200 latency=3.21ms
npm notice created a lockfile as package-lock.json. You should commit this file.
added 214 packages, and audited 215 packages in 4s
`

const diffOutput = `
diff --git a/inventory/store.go b/inventory/store.go
index 8d1f3c2..b70a9e4 100644
--- a/inventory/store.go
+++ b/inventory/store.go
@@ -38,9 +38,12 @@ func (s *Store) Find(ctx context.Context, number int64) (*Item, error) {
 	var item Item
 	row := s.db.QueryRowContext(ctx, selectItem, number)
-	if err := row.Scan(&item.Number, &item.Name); err != nil {
-		return nil, err
+	switch err := row.Scan(&item.Number, &item.Name, &item.Price, &item.Updated); {
+	case errors.Is(err, sql.ErrNoRows):
+		return nil, ErrNotFound
+	case err != nil:
+		return nil, fmt.Errorf("finding item %d: %w", number, err)
 	}
 	return &item, nil
 }
@@ -102,4 +105,5 @@ func open(path string) (*Store, error) {
-	log.Printf("opened \"%s\"\n", path)
+	slog.Info("opened", "path", path)
`

const configurationFile = `
{
  "name": "shop-frontend",
  "version": "2.14.0",
  "private": true,
  "scripts": {
    "build": "tsc -p . && vite build --outDir \"../dist\"",
    "test": "vitest run --reporter=verbose",
    "lint": "eslint \"src/**/*.{ts,tsx}\" --max-warnings=0"
  },
  "dependencies": {
    "react": "^19.1.0",
    "zod": "^4.0.5"
  },
  "description": "Kauppa – käyttöliittymä 日本語 ✓"
}
./inventory/store.go:41:	row := s.db.QueryRowContext(ctx, selectItem, number)
./inventory/store_test.go:88:		t.Errorf("Find(%d) = %v, %q; want %q", test.number, got, err, test.want)
-rw-r--r-- 1 dev dev   4096 Nov 21 00:25 go.mod
drwxr-xr-x 2 dev dev   4096 Nov 21 00:25 inventory
`

const sentences = `
I will look at the store first, because the failing test calls it.
The test expects ErrNotFound, but the query's deadline is exceeded before the row is scanned.
So the context is the problem: the timeout of the store is zero when it was opened without options.
Let me check where "timeout" is set, and whether the tests set it at all.
There are two callers of Find; only one of them handles a missing item.
I'm going to change the default to 5 s and keep the option as it is.
Names with combining characters (ä as a + ◌̈) compare unequal to their composed form; both should be normalised.
That makes the test pass. Now the other packages: money, invoices and the command itself.
All tests pass now — 214 of them, in 4.1 s.
The change is small: one default, one comparison and a test for each.
Käyttäjän nimi näytetään nyt oikein, myös kun siinä on ääkkösiä.
Next I update the documentation, so that it says what "missing" means here.
`

const paths = `
/srv/project/work/inventory/store.go /srv/project/work/inventory/store_test.go /srv/project/work/money/money.go
/srv/project/work/web/src/InvoiceList.tsx /srv/project/work/web/package.json /srv/project/work/cmd/shop/main.go
/srv/project/work/docs/inventory.md /srv/project/work/internal/normalise/normalise.go
`

const commands = `
go test ./inventory -run 'TestFind' -count=1 2>&1 | tail -40
git diff --stat && git diff -- inventory/store.go
grep -rn "timeout" --include='*.go' . | head -50
sed -n '30,120p' inventory/store.go
npm --prefix web test -- --run
ls -la inventory && wc -l inventory/*.go
cat > /tmp/x.txt <<'END'\nhello "world"\nEND
`
