package trace

import (
	"fmt"
	"math"
	"strconv"

	"mockbench/engine"
)

// Format names a form of trace files.
type Format string

// Formats.
const (
	Mooncake      Format = "mooncake"       // one request a line
	MooncakeDelta Format = "mooncake-delta" // one request a line, with only the new part of the prompt
)

// Options say how to read a trace.
type Options struct {
	Format    Format
	BlockSize int // tokens a hash id stands for; 0 is DefaultBlockSize, or what the file says
}

// ParseFormat reads the name of a format, with dashes or underscores.
func ParseFormat(name string) (Format, error) {
	switch name {
	case "mooncake":
		return Mooncake, nil
	case "mooncake-delta", "mooncake_delta":
		return MooncakeDelta, nil
	}
	return "", &engine.SettingError{Setting: "trace_format", Kind: engine.KindUnknown, Given: strconv.Quote(name),
		Allowed: "allowed: mooncake, mooncake-delta"}
}

// Read reads a trace from one or more files.
func Read(paths []string, o Options) (*Trace, error) {
	if len(paths) == 0 {
		return nil, &engine.SettingError{Setting: "trace", Kind: engine.KindMissing, Allowed: "at least one file is needed"}
	}
	if o.BlockSize < 0 {
		return nil, &engine.SettingError{Setting: "trace_block_size", Kind: engine.KindRange, Given: fmt.Sprint(o.BlockSize), Allowed: "must be positive"}
	}
	if len(paths) != 1 {
		return nil, &engine.SettingError{Setting: "trace", Kind: engine.KindRange, Given: fmt.Sprintf("%d files", len(paths)),
			Allowed: fmt.Sprintf("format %s takes one file", o.Format)}
	}
	if o.BlockSize == 0 {
		o.BlockSize = DefaultBlockSize
	}
	t, err := readMooncake(paths[0], o.BlockSize)
	if err == nil {
		t.Delta = o.Format == MooncakeDelta
	}
	return t, err
}

// CheckSpeedup checks a ratio by which arrivals are sped up.
func CheckSpeedup(ratio float64) error {
	if ratio > 0 && !math.IsInf(ratio, 0) {
		return nil
	}
	return &engine.SettingError{Setting: "arrival_speedup_ratio", Kind: engine.KindRange, Given: short(ratio), Allowed: "must be finite and positive"}
}
