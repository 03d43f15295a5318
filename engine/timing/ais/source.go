package ais

import (
	"fmt"
	"slices"
	"strings"
)

// Source says how far a latency is from a measurement.
type Source int

const (
	Measured     Source = iota // a point of the data
	Interpolated               // between points
	Estimated                  // beyond the points, or from a formula
)

func (s Source) String() string {
	return [...]string{"measured", "interpolated", "estimated"}[s]
}

// latency is an answer of a table.
type latency struct {
	ms   float64
	from Source
}

// MissingError says that the data has nothing for a question, and what it has that comes nearest.
type MissingError struct {
	Table   string // file name without its ending
	Wanted  string
	Nearest string // "" if the table is empty
}

func (e *MissingError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("%s: no data for %s, the table is empty or absent", e.Table, e.Wanted)
	}
	return fmt.Sprintf("%s: no data for %s; nearest: %s", e.Table, e.Wanted, e.Nearest)
}

// missing names the key that shares most with the wanted one; ties go to the smaller text.
func missing[K interface {
	comparable
	parts() []string
}](table string, wanted K, have func(yield func(K) bool)) error {
	e := &MissingError{Table: table, Wanted: joined(wanted.parts())}
	most := -1
	for k := range have {
		parts := k.parts()
		shared, text := 0, joined(parts)
		for i, p := range wanted.parts() {
			if p == parts[i] {
				shared++
			}
		}
		if shared > most || shared == most && text < e.Nearest {
			most, e.Nearest = shared, text
		}
	}
	return e
}

// joined writes the parts of a key that a table tells apart.
func joined(parts []string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return strings.HasSuffix(p, "=") })
	return strings.Join(parts, " ")
}
