module github.com/busdk/bus-agent/internal/website

go 1.26.0

require github.com/yuin/goldmark v1.8.7 // reads Markdown, with tables as on GitHub; nothing below it

require (
	github.com/chromedp/cdproto v0.159.0 // tests: the protocol of chromedp
	github.com/chromedp/chromedp v0.23.0 // tests: drives the Chromium that shows the site
	github.com/google/go-cmp v0.7.0 // tests: readable differences
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
