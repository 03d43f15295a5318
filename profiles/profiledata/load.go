package profiledata

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mockbench/engine/timing"
)

// Check says why a path is neither an NPZ file with all arrays nor a results directory, in the sense of the flag
// --planner-profile-data: the suffix .npz is needed, what the arrays hold does not matter yet.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return plain(err)
	}
	if info.IsDir() {
		return complete(path)
	}
	if filepath.Ext(path) != ".npz" || strings.TrimSuffix(filepath.Base(path), ".npz") == "" {
		return errors.New("the name does not end in .npz")
	}
	return withNPZ(path, func(a archive) error {
		if key := a.missing(tableArrays); key != "" {
			return fmt.Errorf("no array %s in it", key)
		}
		return nil
	})
}

// Read returns the table of an NPZ file or of a results directory.
func Read(path string) (*timing.Table, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		r, err := ReadResults(path)
		if err != nil {
			return nil, err
		}
		return r.Table()
	}
	return ReadNPZ(path)
}

// Load returns the timing model of an NPZ file or a results directory. Times that are not numbers are refused here,
// although the reference takes them: it would make up a time for every pass near them.
func Load(path string) (*timing.Grid, error) {
	t, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Model(t)
}

// Model is Load for a table.
func Model(t *timing.Table) (*timing.Grid, error) {
	g, err := timing.NewGrid(*t)
	if err != nil {
		return nil, err
	}
	for i, values := range [][]float64{t.PrefillTokens, t.PrefillMS, t.ActiveTokens, t.Context, t.DecodeMS} {
		if err := finite(tableArrays[i], values); err != nil {
			return nil, err
		}
	}
	return g, nil
}
