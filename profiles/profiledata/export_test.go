package profiledata

import (
	"bytes"
	"io"

	"mockbench/engine/timing"
)

// WriteNPY lets tests make files of other arrays than a table's.
var WriteNPY = writeNPY

// ReadNPY reads an array and returns the number of its values.
func ReadNPY(r io.Reader) (int, error) {
	a, err := readNPY(r)
	if err != nil {
		return 0, err
	}
	return len(a.values), nil
}

// LoadBytes is Load for an NPZ file in memory.
func LoadBytes(data []byte) (*timing.Grid, error) {
	a, err := newArchive(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	t, err := a.table()
	if err != nil {
		return nil, err
	}
	return Model(t)
}
