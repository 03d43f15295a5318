package kv

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"
)

// Seed returns the seed of the block hashes of requests that name an adapter or a cache namespace; empty means none.
// Without both it is the seed of BlockHash.
func Seed(adapter, namespace string) uint64 {
	seed := uint64(hashSeed)
	if adapter != "" {
		seed += xxh3.HashString(adapter)
	}
	if namespace != "" {
		seed += xxh3.HashStringSeed(namespace, 1)
	}
	return seed
}

// SeededHash returns the local hash of a block with a seed of its own and with the hashes of the media in it, in any
// order.
func SeededHash(seed uint64, tokens []uint32, media []uint64) uint64 {
	b := littleEndian(tokens)
	if len(media) > 0 {
		b = slices.Clone(b)
		for _, m := range slices.Sorted(slices.Values(media)) {
			b = binary.LittleEndian.AppendUint64(b, m)
		}
	}
	return xxh3.HashSeed(b, seed)
}
