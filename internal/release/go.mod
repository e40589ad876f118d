module github.com/busdk/bus-agent/internal/release

go 1.26.0

require golang.org/x/mod v0.43.0 // reads and writes go.mod files, and makes the zip files of modules
