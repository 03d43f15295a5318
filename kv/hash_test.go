package kv

import "testing"

func TestSyntheticToken(t *testing.T) {
	one, two := [16]byte{15: 1}, [16]byte{15: 2}
	for position, want := range []uint32{2515880452, 3600266899, 2716793611, 2249174135} {
		if got := SyntheticToken(one, position); got != want {
			t.Errorf("request 1, position %d: got %d, want %d", position, got, want)
		}
	}
	if got := SyntheticToken(two, 0); got != 1927195132 {
		t.Errorf("request 2, position 0: got %d, want 1927195132", got)
	}
}

func TestHashesDoNotAllocate(t *testing.T) {
	tokens := make([]uint32, 64)
	local, sequence := make([]uint64, 0, 4), make([]uint64, 0, 4)
	allocs := testing.AllocsPerRun(100, func() {
		local, sequence = AppendHashes(local[:0], sequence[:0], tokens, 16)
		SyntheticToken([16]byte{}, 7)
	})
	if allocs != 0 {
		t.Errorf("got %v allocations a call, want none", allocs)
	}
	if len(local) != 4 || len(sequence) != 4 || sequence[0] != local[0] || sequence[1] != SequenceHash(sequence[0], local[1]) {
		t.Errorf("wrong chain: local %x, sequence %x", local, sequence)
	}
}
