package kv

import (
	"encoding/binary"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// hashSeed is the seed of block and sequence hashes, the one KV-aware routers use.
const hashSeed = 1337

// BlockHash returns the local hash of a block: XXH3-64 over its token ids, four little-endian bytes each.
func BlockHash(tokens []uint32) uint64 {
	return xxh3.HashSeed(littleEndian(tokens), hashSeed)
}

// SequenceHash returns the sequence hash of a block that follows another one. That of the first block of a sequence is
// its local hash.
func SequenceHash(parent, local uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], parent)
	binary.LittleEndian.PutUint64(b[8:], local)
	return xxh3.HashSeed(b[:], hashSeed)
}

// AppendHashes appends the local and sequence hashes of the complete blocks of tokens, a sequence from its start.
func AppendHashes(local, sequence []uint64, tokens []uint32, blockSize int) (locals, sequences []uint64) {
	var parent uint64
	for first := true; len(tokens) >= blockSize; first = false {
		hash := BlockHash(tokens[:blockSize])
		local = append(local, hash)
		if !first {
			hash = SequenceHash(parent, hash)
		}
		sequence = append(sequence, hash)
		parent, tokens = hash, tokens[blockSize:]
	}
	return local, sequence
}

// SyntheticToken returns the output token of a request at a position (from 0) that no plan covers: the low half of
// XXH3-64 over the bytes of the request's id and the position.
func SyntheticToken(id [16]byte, position int) uint32 {
	var b [24]byte
	copy(b[:], id[:])
	binary.LittleEndian.PutUint64(b[16:], uint64(position))
	return uint32(xxh3.Hash(b[:]))
}

// littleEndian returns the bytes of tokens in little-endian order. On little-endian machines that is the tokens' own
// memory.
func littleEndian(tokens []uint32) []byte {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(tokens))), 4*len(tokens))
	}
	b := make([]byte, 0, 4*len(tokens))
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	return b
}
