package trace

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"

	"mockbench/engine"
)

// Basis says how the timestamps inside subagents of a Weka trace are meant.
type Basis string

// Bases.
const (
	AutoBasis     Basis = "auto"     // relative if any is before its subagent's own timestamp, else absolute
	AbsoluteBasis Basis = "absolute" // from the start of the trace
	RelativeBasis Basis = "relative" // from the start of the subagent
	noBasis       Basis = "not_applicable"
)

// CheckBasis checks the name of a basis; "" is auto.
func CheckBasis(b Basis) error {
	switch b {
	case "", AutoBasis, AbsoluteBasis, RelativeBasis:
		return nil
	}
	return &engine.SettingError{Setting: "weka_nested_timestamp_basis", Kind: engine.KindUnknown, Given: strconv.Quote(string(b)),
		Allowed: "allowed: auto, absolute, relative"}
}

// wekaSlack is how much later than a request's start another one may end that it follows, in seconds.
const wekaSlack = 1e-6

// maxWekaBlocks bounds the blocks of a prompt: a Weka trace need not name them all, so that a slip of the pen in a length
// could take all memory.
const maxWekaBlocks = 1 << 20

// wekaTrace is one recorded run of an agent, one play.
type wekaTrace struct {
	name string // of the file, with the number of the object unless it is the first

	ID        string         `json:"id"`
	Models    []string       `json:"models"`
	BlockSize int            `json:"block_size"`
	Scope     string         `json:"hash_id_scope"`
	Requests  []*wekaRequest `json:"requests"`
}

// wekaRequest is a request, or a subagent with requests of its own. Times are seconds.
type wekaRequest struct {
	Type   string   `json:"type"`
	T      *float64 `json:"t"`
	Model  string   `json:"model"`
	In     int      `json:"in"`
	Out    int      `json:"out"`
	Hashes []uint64 `json:"hash_ids"`
	API    *float64 `json:"api_time"`

	Agent    string         `json:"agent_id"`
	Status   string         `json:"status"`
	Duration *float64       `json:"duration_ms"`
	Requests []*wekaRequest `json:"requests"`

	id         string
	start, end float64
}

// weka reads the traces of a file or folder.
type weka struct {
	traces []*wekaTrace
	digest *blake3.Hasher
}

func readWeka(path string, blockSize int, basis Basis) (*Trace, error) {
	w := &weka{digest: blake3.New()}
	if err := w.readAll(path); err != nil {
		return nil, err
	}
	size := w.traces[0].BlockSize
	for _, t := range w.traces {
		if err := t.check(); err != nil {
			return nil, err
		}
		if t.BlockSize != size {
			return nil, fmt.Errorf("trace: %s: block_size %d differs from %d of the first trace", t.name, t.BlockSize, size)
		}
	}
	if blockSize != 0 && blockSize != size {
		return nil, &engine.SettingError{Setting: "trace_block_size", Kind: engine.KindConflict, Given: strconv.Itoa(blockSize),
			Allowed: fmt.Sprintf("must be the block_size %d of the trace", size)}
	}
	basis = w.resolve(basis)
	d := draft{blockSize: size, source: Source{Format: "weka", Digest: hex.EncodeToString(w.digest.Sum(nil))}}
	for i, t := range w.traces {
		d.nodes = append(d.nodes, t.nodes(i, basis)...)
	}
	t, err := d.finish()
	if err == nil {
		t.Graph.Basis = string(basis)
	}
	return t, err
}

// readAll reads a file, or all JSON files of a folder and the folders in it, in the order of their paths.
func (w *weka) readAll(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	if !info.IsDir() {
		return w.read(path, filepath.Base(path))
	}
	err = filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		switch filepath.Ext(strings.TrimSuffix(file, ".gz")) {
		case ".json", ".jsonl":
			name, err := filepath.Rel(path, file)
			if err != nil {
				return err
			}
			return w.read(file, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(w.traces) == 0 {
		return fmt.Errorf("trace: %s holds no .json or .jsonl files", path)
	}
	return nil
}

// read reads the objects of a file.
func (w *weka) read(path, name string) error {
	in, err := openLines(path)
	if err != nil {
		return err
	}
	defer in.close()
	w.digest.WriteString(name + "\x00")
	objects := json.NewDecoder(io.TeeReader(in.reader, w.digest))
	for n := 1; ; n++ {
		t := &wekaTrace{name: name}
		if n > 1 {
			t.name = fmt.Sprintf("%s#%06d", name, n-1)
		}
		switch err := objects.Decode(t); {
		case errors.Is(err, io.EOF) && n > 1:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("trace: %s holds no traces", path)
		case err != nil:
			return fmt.Errorf("trace: %s: object %d: not a Weka trace: %w", path, n, err)
		}
		w.traces = append(w.traces, t)
	}
}

// check finds what is wrong with a trace.
func (t *wekaTrace) check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("trace: %s: %s", t.name, fmt.Sprintf(format, args...))
	}
	switch {
	case t.ID == "":
		return wrong("id is missing")
	case t.Scope != "local":
		return wrong("hash_id_scope %s is not supported, only local", strconv.Quote(t.Scope))
	case t.BlockSize < 1:
		return wrong("block_size must be positive")
	}
	asked := false
	for i, r := range t.Requests {
		var err error
		if r.Type == "subagent" {
			err = r.checkSubagent(t, asked)
		} else {
			asked, err = true, r.check(t)
		}
		if err != nil {
			return wrong("request %d: %v", i, err)
		}
	}
	if !asked {
		return wrong("there are no requests")
	}
	return nil
}

func (r *wekaRequest) check(t *wekaTrace) error {
	switch {
	case r.Type != "n" && r.Type != "s":
		return fmt.Errorf("type %s is unknown, allowed: n, s, subagent", strconv.Quote(r.Type))
	case r.T == nil || !timeInMS(*r.T):
		return errors.New("t must be a finite number of seconds, not negative")
	case r.API != nil && !timeInMS(*r.API):
		return errors.New("api_time must be finite and not negative")
	case blank(r.Model):
		return errors.New("model must not be blank")
	case len(t.Models) > 0 && !slices.Contains(t.Models, r.Model):
		return fmt.Errorf("model %s is not among the models of the trace", r.Model)
	case r.In < 1:
		return errors.New("in must be positive")
	case r.In/t.BlockSize >= maxWekaBlocks:
		return fmt.Errorf("in of %d tokens is more than %d blocks of %d tokens", r.In, maxWekaBlocks, t.BlockSize)
	case r.Out < 0 || r.Out > math.MaxInt32:
		return errors.New("out must not be negative")
	}
	return nil
}

func (r *wekaRequest) checkSubagent(t *wekaTrace, asked bool) error {
	switch {
	case !asked:
		return fmt.Errorf("subagent %s has no request before it", r.Agent)
	case r.T == nil || !timeInMS(*r.T):
		return errors.New("t must be a finite number of seconds, not negative")
	case r.Status != "completed" && r.Status != "async_launched":
		return fmt.Errorf("status %s of subagent %s is not supported, allowed: completed, async_launched", strconv.Quote(r.Status), r.Agent)
	case r.Status == "completed" && len(r.Requests) == 0:
		return fmt.Errorf("subagent %s is waited for and has no requests", r.Agent)
	case r.Duration != nil && !timeInMS(*r.Duration):
		return errors.New("duration_ms must be finite and not negative")
	}
	for i, inner := range r.Requests {
		if err := inner.check(t); err != nil {
			return fmt.Errorf("subagent %s: request %d: %w", r.Agent, i, err)
		}
	}
	return nil
}

// resolve decides how nested timestamps are meant, for all traces alike.
func (w *weka) resolve(b Basis) Basis {
	nested, early := false, false
	for _, t := range w.traces {
		for _, r := range t.Requests {
			for _, inner := range r.Requests {
				nested = true
				early = early || *inner.T < *r.T-wekaSlack
			}
		}
	}
	switch {
	case !nested:
		return noBasis
	case b == AbsoluteBasis || b == RelativeBasis:
		return b
	case early:
		return RelativeBasis
	}
	return AbsoluteBasis
}

// inMS turns seconds into milliseconds, rounded to nanoseconds.
func inMS(seconds float64) float64 { return math.Round(max(seconds, 0)*1e9) / 1e6 }

// wekaHash names a block of one file so that it does not meet those of another.
func wekaHash(parts ...string) uint64 {
	h := blake3.New()
	for _, p := range parts {
		h.WriteString(p)
		h.Write([]byte{0})
	}
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// hashes returns the ids of a request's blocks. Complete blocks keep what the trace says, the rest is of the request alone.
func (r *wekaRequest) hashes(space string, blockSize int) []uint64 {
	ids := make([]uint64, (r.In+blockSize-1)/blockSize)
	own := wekaHash(space, "own", r.id)
	for b := range ids {
		if b < len(r.Hashes) && b < r.In/blockSize {
			ids[b] = wekaHash(space, "block", strconv.FormatUint(r.Hashes[b], 10))
		} else {
			ids[b] = own + uint64(b)
		}
	}
	return ids
}
