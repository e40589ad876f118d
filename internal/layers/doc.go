// Package layers holds the test that keeps imports going one way only.
package layers
