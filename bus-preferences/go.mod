module github.com/busdk/bus-preferences

go 1.26
