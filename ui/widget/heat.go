package widget

import "mockbench/engine"

// Evicted is the state, beyond the engine's own, of a block that lost its contents in the last second.
const Evicted = engine.BlockHost + 1

// PerCell returns how many blocks one cell stands for if n blocks are shown in that many cells.
func PerCell(n, cells int) int {
	if cells <= 0 {
		return 1
	}
	return max(1, (n+cells-1)/cells)
}

// Aggregate returns the state that stands for the blocks of one cell, which are not empty: evictions if they are a
// quarter, else the largest of blocks in use, kept contents and free ones, in that order when equal; within a group the
// rarer state wins at half.
func Aggregate(blocks []engine.BlockState) engine.BlockState {
	if len(blocks) == 1 {
		return blocks[0]
	}
	var n [Evicted + 1]int
	for _, b := range blocks {
		n[b]++
	}
	used := n[engine.BlockActive] + n[engine.BlockShared]
	kept := n[engine.BlockCached] + n[engine.BlockHost]
	switch {
	case n[Evicted] > 0 && n[Evicted]*4 >= len(blocks):
		return Evicted
	case used >= kept && used >= n[engine.BlockFree]:
		return either(engine.BlockShared, n[engine.BlockShared], engine.BlockActive, used)
	case kept >= n[engine.BlockFree]:
		return either(engine.BlockHost, n[engine.BlockHost], engine.BlockCached, kept)
	}
	return engine.BlockFree
}

// either returns the rare state if it makes half of all, and there are any, else the common one.
func either(rare engine.BlockState, n int, common engine.BlockState, all int) engine.BlockState {
	if n > 0 && n*2 >= all {
		return rare
	}
	return common
}

// Tenths returns how many tenths of the blocks are in the state, 0 to 9. Any at all is at least 1, all are 9.
func Tenths(blocks []engine.BlockState, state engine.BlockState) int {
	n := 0
	for _, b := range blocks {
		if b == state {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return min(max(n*10/len(blocks), 1), 9)
}
