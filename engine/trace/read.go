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
	Mooncake      Format = "mooncake"                // one request a line
	MooncakeDelta Format = "mooncake-delta"          // one request a line, with only the new part of the prompt
	Agentic       Format = "agentic_mooncake"        // requests that depend on one another
	Applied       Format = "applied_compute_agentic" // one session of an agent a line, without arrival times
	Weka          Format = "weka"                    // recorded runs of agents, in a file or a folder
	Dynamo        Format = "dynamo"                  // request traces of a Dynamo frontend, in any number of files
)

// Options say how to read a trace.
type Options struct {
	Format    Format
	BlockSize int // tokens a hash id stands for; 0 is DefaultBlockSize, or what the file says

	PrefixRatio  float64 // Applied: share of a first prompt that its group has in common, 0 to 1
	PrefixGroups int     // Applied: number of groups

	Nested Basis // Weka: how timestamps inside subagents are meant; "" is auto
}

// ParseFormat reads the name of a format, with dashes or underscores.
func ParseFormat(name string) (Format, error) {
	switch name {
	case "mooncake":
		return Mooncake, nil
	case "mooncake-delta", "mooncake_delta":
		return MooncakeDelta, nil
	case "agentic_mooncake", "agentic-mooncake":
		return Agentic, nil
	case "applied_compute_agentic":
		return Applied, nil
	case "weka":
		return Weka, nil
	case "dynamo":
		return Dynamo, nil
	}
	return "", &engine.SettingError{Setting: "trace_format", Kind: engine.KindUnknown, Given: strconv.Quote(name),
		Allowed: "allowed: mooncake, mooncake-delta, agentic_mooncake, weka, applied_compute_agentic, dynamo"}
}

// Read reads a trace from one or more files.
func Read(paths []string, o Options) (*Trace, error) {
	if len(paths) == 0 {
		return nil, &engine.SettingError{Setting: "trace", Kind: engine.KindMissing, Allowed: "at least one file is needed"}
	}
	if o.BlockSize < 0 {
		return nil, &engine.SettingError{Setting: "trace_block_size", Kind: engine.KindRange, Given: fmt.Sprint(o.BlockSize), Allowed: "must be positive"}
	}
	if o.Format == Dynamo {
		return readDynamo(paths, o.BlockSize)
	}
	if len(paths) != 1 {
		return nil, &engine.SettingError{Setting: "trace", Kind: engine.KindRange, Given: fmt.Sprintf("%d files", len(paths)),
			Allowed: fmt.Sprintf("format %s takes one file", o.Format)}
	}
	if !(o.PrefixRatio >= 0 && o.PrefixRatio <= 1) {
		return nil, &engine.SettingError{Setting: "trace_shared_prefix_ratio", Kind: engine.KindRange, Given: short(o.PrefixRatio), Allowed: "must be between 0 and 1"}
	}
	if err := CheckBasis(o.Nested); err != nil {
		return nil, err
	}
	given := o.BlockSize
	if o.BlockSize == 0 {
		o.BlockSize = DefaultBlockSize
	}
	switch o.Format {
	case Agentic:
		t, err := readAgentic(paths[0])
		if err == nil && given != 0 && given != t.BlockSize {
			t.Notes = append(t.Notes, fmt.Sprintf("trace_block_size %d has no effect: the trace says %d", given, t.BlockSize))
		}
		return t, err
	case Weka:
		return readWeka(paths[0], given, o.Nested)
	case Applied:
		return readApplied(paths[0], o)
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
