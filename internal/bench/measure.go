//go:build linux || darwin

package main

import (
	"cmp"
	"slices"
	"time"
)

// A work is done once a round and returns what it cost.
type work[T any] func() (T, error)

// inTurn does each work once a round, in turn, so that a machine whose speed
// drifts is unfair to none, and returns what each round cost each of them.
func inTurn[T any](rounds, warmUp int, works ...work[T]) ([][]T, error) {
	costs := make([][]T, len(works))
	for i := range rounds + warmUp {
		for j, w := range works {
			cost, err := w()
			if err != nil {
				return nil, err
			}
			if i >= warmUp {
				costs[j] = append(costs[j], cost)
			}
		}
	}
	return costs, nil
}

// timed makes a work of f whose cost is its time.
func timed(f func() error) work[time.Duration] {
	return func() (time.Duration, error) {
		begun := time.Now()
		err := f()
		return time.Since(begun), err
	}
}

func median[T any, N cmp.Ordered](costs []T, of func(T) N) N {
	all := make([]N, len(costs))
	for i, c := range costs {
		all[i] = of(c)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func itself(d time.Duration) time.Duration { return d }
