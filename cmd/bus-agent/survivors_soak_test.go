//go:build soak

package main

import "testing"

// Each kind of descendant alone, so that none is found by way of another.
func TestNoSurvivorsOneByOne(t *testing.T) {
	t.Parallel()
	var sets []map[string]string
	for kind := range descendants {
		sets = append(sets, only(kind))
	}
	testNoSurvivors(t, sets...)
}
