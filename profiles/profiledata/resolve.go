package profiledata

import (
	"fmt"
	"strconv"

	"mockbench/engine"
)

// ProfileData is the pass times that a worker was given: the path of an NPZ file or of a results directory, or nothing.
type ProfileData struct{ Path string }

// Resolve checks that a path is an NPZ file with all arrays or a results directory; the empty path is no profile data.
// What the arrays hold is checked by Load. Errors are *engine.SettingError, which lists the accepted forms.
func Resolve(path string) (*ProfileData, error) {
	if path == "" {
		return &ProfileData{}, nil
	}
	if err := Check(path); err != nil {
		return nil, &engine.SettingError{Setting: "--planner-profile-data", Kind: engine.KindRange, Given: strconv.Quote(path),
			Allowed: fmt.Sprintf("must be an NPZ file, or a directory with prefill and decode data as NPZ or as JSON: %v", err)}
	}
	return &ProfileData{Path: path}, nil
}

// Close ends the use of the data. A results directory is converted in memory, so that there is no temporary file that
// would have to go; Close is for callers that also run where there is one. It may be called often, on nil too.
func (d *ProfileData) Close() error {
	if d != nil {
		d.Path = ""
	}
	return nil
}
