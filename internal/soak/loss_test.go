package soak

import (
	"strings"
	"testing"
)

// size returns the one that counts.
func size[T int | int64](full, small T) T {
	if large {
		return full
	}
	return small
}

// code is two lines of a source file as they stand in a JSON string.
const code = `	if err := run(\"file\"); err != nil {\n		return fmt.Errorf(\"%w\\n\", err)\n`

// scenarios are what an agent can print.
func scenarios() []scenario {
	working := func(count int64) passage {
		return passage{count, []saying{called(), returned(strings.ReplaceAll(code, "\t", "    "), 30), message("words and ", 150)}}
	}
	mix := working(size[int64](2_300_000, 40))                                                     // 10 GB
	mixed := working(size[int64](450_000, 20))                                                     // 2 GB
	plainLines := passage{size[int64](5_000_000, 100), []saying{printed(true, "words and ", 200)}} // 10 GB
	mebibyte := passage{size[int64](2_000, 2), []saying{message("x", 1<<20-100)}}
	sixteen := passage{size[int64](50, 1), []saying{message("x", size(16<<20-200, 1<<20+1))}}
	tools := passage{size[int64](500_000, 100), []saying{called(), returned(`ok\n`, 1)}}

	after := once(message("after", 1))
	empty := Line{After: []byte("\n"), Plain: true}
	return []scenario{
		{name: "a day of work", runtime: "lines", ways: []string{ndjson, events}, few: 2,
			says: []passage{mix, once(succeeded())}},
		{name: "an afternoon of work", runtime: "lines", ways: []string{text, object, format}, few: 3,
			says: []passage{mixed, once(succeeded())}, answer: last(mixed)},
		{name: "plain text", runtime: "plain", ways: []string{ndjson}, few: 1,
			says: []passage{plainLines}},
		{name: "lines of 1 MiB", runtime: "lines", ways: all,
			says: []passage{mebibyte, once(succeeded())}, answer: last(mebibyte)},
		{name: "lines of up to 16 MiB", runtime: "lines", long: true, ways: all, few: 1,
			says: []passage{sixteen, once(succeeded())}, answer: cut("000000000049 xxx", "xxx")},
		{name: "a line of 1 GB", runtime: "lines", long: true, ways: all, few: 2,
			says:   []passage{once(message("before", 1), tooLong(size(1_000_000_000, 16<<20+200))), after, once(succeeded())},
			answer: last(after)},
		{name: "a line of text of 1 GB", runtime: "plain", long: true, ways: []string{ndjson},
			says: []passage{once(printed(false, "0123456789", size(100_000_000, 2_000_000)), printed(false, "after", 1))}},
		{name: "10,000,000 empty lines", runtime: "lines", ways: all, few: 1,
			says:   []passage{{size[int64](10_000_000, 10_000), []saying{{raw: &empty}}}, after, once(succeeded())},
			answer: last(after)},
		{name: "10,000,000 empty lines of text", runtime: "plain", ways: []string{ndjson, text},
			says: []passage{{10_000_000, []saying{printed(false, "", 0)}}}, answer: cut("\n", "\n")},
		{name: "1,000,000 tool events", runtime: "lines", ways: all, few: 1,
			says: []passage{tools, once(succeeded())}, answer: none},
	}
}

func TestNothingIsLostAndNothingGrows(t *testing.T) {
	atOnce(t)
	for _, s := range scenarios() {
		if !large {
			s.ways = s.ways[:s.few]
		}
		for _, way := range s.ways {
			t.Run(s.name+"/"+way, func(t *testing.T) {
				atOnce(t)
				s.run(t, way)
			})
		}
	}
}
