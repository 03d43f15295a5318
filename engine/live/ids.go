package live

import (
	"encoding/binary"

	"mockbench/engine"
)

// requestID returns the id of the n-th request, from 0, submitted to worker index of a process with the given seed.
// The same three numbers always give the same id, and so the same synthetic tokens and block hashes. It has the form
// of a random UUID (version 4): 122 bits of two mixed words, the upper a hash of seed, index and n, the lower a
// one-to-one function of n for each seed and index.
func requestID(seed uint64, index int, n uint64) (id engine.ID) {
	stream := mix(seed + 0x9e3779b97f4a7c15*uint64(index+1))
	binary.BigEndian.PutUint64(id[:8], mix(stream^mix(n)))
	binary.BigEndian.PutUint64(id[8:], mix(stream+n))
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// mix is the output function of SplitMix64, a permutation of 64-bit words.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
