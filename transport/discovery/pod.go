package discovery

import (
	"encoding/binary"
	"math/bits"
)

// PodID returns the instance id of the worker whose metadata object, in Kubernetes, has the given name: SipHash-1-3 with
// a zero key of the name and an end mark, cut to the width of publisher ids.
func PodID(object string) uint64 {
	return sipHash13(append([]byte(object), 0xFF)) & PublisherMask
}

// sipHash13 is SipHash with one round a word, three at the end, and a key of zeros.
func sipHash13(data []byte) uint64 {
	v := sipState{0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573}
	last := uint64(len(data)) << 56
	for len(data) >= 8 {
		v.absorb(binary.LittleEndian.Uint64(data))
		data = data[8:]
	}
	for i, c := range data {
		last |= uint64(c) << (8 * i)
	}
	v.absorb(last)
	v[2] ^= 0xFF
	for range 3 {
		v.round()
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

type sipState [4]uint64

func (v *sipState) absorb(word uint64) {
	v[3] ^= word
	v.round()
	v[0] ^= word
}

func (v *sipState) round() {
	v[0] += v[1]
	v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
	v[0] = bits.RotateLeft64(v[0], 32)
	v[2] += v[3]
	v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
	v[0] += v[3]
	v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
	v[2] += v[1]
	v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
	v[2] = bits.RotateLeft64(v[2], 32)
}
