package profiledata

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"mockbench/engine"
	"mockbench/engine/timing"
)

// mostFileBytes bounds files that are read: five arrays of the largest size and whatever else lies beside them.
const mostFileBytes = 256 << 20

// tableArrays are the arrays of a table of pass times.
var tableArrays = []string{timing.PrefillTokensArray, timing.PrefillMSArray, timing.ActiveTokensArray,
	timing.ContextArray, timing.DecodeMSArray}

// openFile opens a regular file of a size that can be one of ours. Opening anything else might never return.
func openFile(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, 0, plain(err)
	case !info.Mode().IsRegular():
		return nil, 0, errors.New("not a regular file")
	case info.Size() > mostFileBytes:
		return nil, 0, fmt.Errorf("%d bytes, must be at most %d", info.Size(), mostFileBytes)
	}
	f, err := os.Open(path)
	return f, info.Size(), plain(err)
}

// plain leaves out operation and path, which the caller tells.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// archive is an NPZ file: a ZIP archive of arrays, by their names.
type archive map[string]*zip.File

// withNPZ opens an NPZ file while it is used.
func withNPZ(path string, use func(archive) error) error {
	f, size, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	a, err := newArchive(f, size)
	if err != nil {
		return err
	}
	return use(a)
}

func newArchive(r io.ReaderAt, size int64) (archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not an NPZ file: %w", err)
	}
	a := archive{}
	for _, e := range z.File {
		if key, ok := strings.CutSuffix(e.Name, ".npy"); ok {
			a[key] = e
		}
	}
	return a, nil
}

// missing returns the first of some arrays that is not there, or "".
func (a archive) missing(keys []string) string {
	for _, k := range keys {
		if a[k] == nil {
			return k
		}
	}
	return ""
}

// read returns an array. The error is a *timing.ArrayError.
func (a archive) read(key string) (*array, error) {
	e := a[key]
	if e == nil {
		return nil, &timing.ArrayError{Array: key, Kind: engine.KindMissing, Text: "no such array in the file"}
	}
	r, err := e.Open()
	if err == nil {
		defer r.Close()
		var v *array
		if v, err = readNPY(r); err == nil {
			return v, nil
		}
	}
	return nil, &timing.ArrayError{Array: key, Kind: engine.KindType, Text: err.Error()}
}

// floats returns the float64 array of a key with so many dimensions.
func (a archive) floats(key string, dimensions int) (*array, error) {
	v, err := a.read(key)
	if err != nil {
		return nil, err
	}
	if v.kind != "<f8" && v.kind != ">f8" {
		return nil, &timing.ArrayError{Array: key, Kind: engine.KindType,
			Text: fmt.Sprintf("values of type %q, must be float64", v.kind)}
	}
	if len(v.shape) != dimensions {
		return nil, &timing.ArrayError{Array: key, Kind: engine.KindType,
			Text: fmt.Sprintf("got %d dimensions, must be %d", len(v.shape), dimensions)}
	}
	return v, nil
}

// ReadNPZ reads a table of pass times as it is. An array that cannot be used is a *timing.ArrayError.
func ReadNPZ(path string) (t *timing.Table, err error) {
	err = withNPZ(path, func(a archive) error {
		t, err = a.table()
		return err
	})
	return t, err
}

func (a archive) table() (*timing.Table, error) {
	t := &timing.Table{}
	vectors := []*[]float64{&t.PrefillTokens, &t.PrefillMS, &t.ActiveTokens, &t.Context}
	for i, key := range tableArrays[:len(vectors)] {
		v, err := a.floats(key, 1)
		if err != nil {
			return nil, err
		}
		*vectors[i] = v.values
	}
	v, err := a.floats(timing.DecodeMSArray, 2)
	if err != nil {
		return nil, err
	}
	t.DecodeMS, t.DecodeShape = v.values, [2]int{v.shape[0], v.shape[1]}
	return t, nil
}

// WriteNPZ writes a table as an NPZ file, which the reference reads too.
func WriteNPZ(w io.Writer, t *timing.Table) error {
	z := zip.NewWriter(w)
	for i, values := range [][]float64{t.PrefillTokens, t.PrefillMS, t.ActiveTokens, t.Context, t.DecodeMS} {
		shape := []int{len(values)}
		if tableArrays[i] == timing.DecodeMSArray {
			shape = t.DecodeShape[:]
		}
		e, err := z.Create(tableArrays[i] + ".npy")
		if err != nil {
			return err
		}
		if err := writeNPY(e, values, shape...); err != nil {
			return err
		}
	}
	return z.Close()
}
