package spec

import "mockbench/engine/random"

// Draws returns the first n raw draws of a seed.
func Draws(seed uint64, n int) (draws []uint64) {
	s := random.New(seed)
	for range n {
		draws = append(draws, s.Uint64())
	}
	return draws
}
