package spec

// Draws returns the first n raw draws of a seed.
func Draws(seed uint64, n int) (draws []uint64) {
	s := newSource(seed)
	for range n {
		draws = append(draws, s.next())
	}
	return draws
}
