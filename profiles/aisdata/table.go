package aisdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/parquet-go/parquet-go"
)

// table holds some columns of a Parquet file.
type table struct {
	rows   int
	ints   map[string][]int64
	floats map[string][]float64
	texts  map[string][]string
}

// readTable reads columns of a file. Columns that the file lacks are absent from the result.
func readTable(fsys fs.FS, path string, columns ...string) (*table, error) {
	data, err := fs.ReadFile(fsys, path)
	if err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t := &table{rows: int(f.NumRows()), ints: map[string][]int64{}, floats: map[string][]float64{}, texts: map[string][]string{}}
	for _, name := range columns {
		leaf, ok := f.Schema().Lookup(name)
		if !ok {
			continue
		}
		for _, group := range f.RowGroups() {
			if err := t.readColumn(name, leaf.Node.Type().Kind(), group.ColumnChunks()[leaf.ColumnIndex]); err != nil {
				return nil, fmt.Errorf("%s: column %s: %w", path, name, err)
			}
		}
	}
	return t, nil
}

func (t *table) readColumn(name string, kind parquet.Kind, chunk parquet.ColumnChunk) error {
	pages := chunk.Pages()
	defer pages.Close()
	interned := map[string]string{}
	values := make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for reader := page.Values(); ; {
			n, err := reader.ReadValues(values)
			for _, v := range values[:n] {
				if err := t.add(name, kind, v, interned); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(page)
	}
}

func (t *table) add(name string, kind parquet.Kind, v parquet.Value, interned map[string]string) error {
	switch kind {
	case parquet.Int64:
		t.ints[name] = append(t.ints[name], v.Int64())
	case parquet.Int32:
		t.ints[name] = append(t.ints[name], int64(v.Int32()))
	case parquet.Double:
		t.floats[name] = append(t.floats[name], v.Double())
	case parquet.ByteArray:
		b := v.ByteArray()
		text, ok := interned[string(b)]
		if !ok {
			text = string(b)
			interned[text] = text
		}
		t.texts[name] = append(t.texts[name], text)
	default:
		return fmt.Errorf("type %v is not read", kind)
	}
	return nil
}

// int returns a whole number of a row, 0 if the file lacks the column.
func (t *table) int(column string, row int) int {
	if c := t.ints[column]; row < len(c) {
		return int(c[row])
	}
	return 0
}

// text returns a word of a row, "" if the file lacks the column.
func (t *table) text(column string, row int) string {
	if c := t.texts[column]; row < len(c) {
		return c[row]
	}
	return ""
}

// latency returns the latency of a row in ms.
func (t *table) latency(row int) float64 { return t.floats["latency"][row] }

// require reports the first column that a file lacks.
func (t *table) require(path string, columns ...string) error {
	for _, c := range columns {
		if len(t.ints[c])+len(t.floats[c])+len(t.texts[c]) != t.rows {
			return fmt.Errorf("%s: column %s is absent or has empty fields", path, c)
		}
	}
	return nil
}
