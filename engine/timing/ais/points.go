package ais

import (
	"cmp"
	"slices"
)

// point is one measurement at up to three coordinates.
type point struct {
	at [3]int32
	ms float64
}

// collector gathers the rows of one table. Of rows with the same key and coordinates the first one counts, so sources
// are added in the order of their rank.
type collector[K comparable] struct {
	index map[K]int32
	keys  []K
	rows  []row
}

type row struct {
	point
	key, order int32
}

func newCollector[K comparable]() collector[K] {
	return collector[K]{index: map[K]int32{}}
}

func (c *collector[K]) add(key K, ms float64, a, b, d int) {
	i, ok := c.index[key]
	if !ok {
		i = int32(len(c.keys))
		c.index[key] = i
		c.keys = append(c.keys, key)
	}
	c.rows = append(c.rows, row{point{[3]int32{int32(a), int32(b), int32(d)}, ms}, i, int32(len(c.rows))})
}

// groups calls f for every key, in the order of first appearance, with its rows sorted by coordinates.
func (c *collector[K]) groups(f func(key K, rows []row)) {
	slices.SortFunc(c.rows, func(x, y row) int {
		return cmp.Or(cmp.Compare(x.key, y.key), slices.Compare(x.at[:], y.at[:]), cmp.Compare(x.order, y.order))
	})
	c.rows = slices.CompactFunc(c.rows, func(x, y row) bool { return x.key == y.key && x.at == y.at })
	for start := 0; start < len(c.rows); {
		end := start + 1
		for end < len(c.rows) && c.rows[end].key == c.rows[start].key {
			end++
		}
		f(c.keys[c.rows[start].key], c.rows[start:end])
		start = end
	}
}

func pointsOf(rows []row) []point {
	points := make([]point, len(rows))
	for i, r := range rows {
		points[i] = r.point
	}
	return points
}
