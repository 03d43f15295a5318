package sweepcmd

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/profiles"
	"mockbench/profiles/suggest"
)

// target is what a name of --vary stands for.
type target struct {
	name string // as it was given
	flag string // of the replay command; empty for a setting
	pool string // "prefill" or "decode"; empty for all workers
	path string // dotted name of an engine setting
}

// parameter is a setting that is varied, with its values.
type parameter struct {
	target
	values []string
}

// mostRuns bounds a sweep, whose runs are all planned before the first.
const mostRuns = 100_000

func usage(format string, args ...any) error {
	return &flags.UsageError{Text: fmt.Sprintf(format, args...)}
}

// parseVary reads NAME=VALUES.
func parseVary(text string) (p parameter, err error) {
	name, spec, found := strings.Cut(text, "=")
	if !found || spec == "" {
		return p, usage("--vary: got %q, must be NAME=VALUE,VALUE... or NAME=LOW:HIGH:xFACTOR or NAME=LOW:HIGH:+STEP", text)
	}
	if p.target, err = findTarget("--vary", strings.TrimSpace(name)); err != nil {
		return p, err
	}
	if p.values, err = parseValues(spec); err != nil {
		return p, usage("--vary %s: %v", name, err)
	}
	return p, nil
}

// parseValues reads a list of values, or a range: LOW:HIGH:x2 multiplies, LOW:HIGH:+8 adds, LOW:HIGH adds 1. The values
// of a range go up to HIGH, which is one of them only if a step meets it.
func parseValues(spec string) (values []string, err error) {
	parts := strings.Split(spec, ":")
	if strings.HasPrefix(strings.TrimSpace(spec), "{") || strings.Contains(spec, ",") || len(parts) == 1 {
		if strings.HasPrefix(strings.TrimSpace(spec), "{") {
			return []string{spec}, nil
		}
		for v := range strings.SplitSeq(spec, ",") {
			if v = strings.TrimSpace(v); v == "" || slices.Contains(values, v) {
				return nil, fmt.Errorf("got %q, values must not be empty or repeat", spec)
			}
			values = append(values, v)
		}
		return values, nil
	}
	if len(parts) == 2 {
		parts = append(parts, "+1")
	}
	low, err1 := strconv.ParseFloat(parts[0], 64)
	high, err2 := strconv.ParseFloat(parts[1], 64)
	if len(parts) != 3 || err1 != nil || err2 != nil || !(low <= high) || len(parts[2]) < 2 {
		return nil, fmt.Errorf("got %q, a range must be LOW:HIGH:xFACTOR or LOW:HIGH:+STEP", spec)
	}
	step, err := strconv.ParseFloat(parts[2][1:], 64)
	var next func(i int) float64
	switch {
	case err == nil && parts[2][0] == 'x' && step > 1 && low > 0:
		x := low
		next = func(i int) float64 {
			if i > 0 {
				x *= step
			}
			return x
		}
	case err == nil && parts[2][0] == '+' && step > 0:
		next = func(i int) float64 { return low + float64(i)*step }
	default:
		return nil, fmt.Errorf("got step %q, must be x and a factor above 1 (from a positive start), "+
			"or + and a number above 0", parts[2])
	}
	for i := 0; ; i++ {
		x := next(i)
		if x > high*(1+1e-12) {
			return values, nil
		}
		if i >= mostRuns {
			return nil, fmt.Errorf("got %q, must be at most %d values", spec, mostRuns)
		}
		values = append(values, strconv.FormatFloat(x, 'f', -1, 64))
	}
}

// findTarget finds the flag of the replay command or the engine setting that a name stands for.
func findTarget(flag, name string) (target, error) {
	t := target{name: name}
	known := replaycmd.FlagSet()
	plain := strings.ReplaceAll(strings.TrimPrefix(name, "--"), "_", "-")
	if f := known.Lookup(plain); f != nil {
		if !variable(f.Name) {
			return t, usage("%s: %s cannot be varied, it says what becomes of a run", flag, name)
		}
		t.flag = f.Name
		return t, nil
	}
	t.path = name
	if pool, rest, dotted := strings.Cut(name, "."); dotted && (pool == "prefill" || pool == "decode") {
		t.pool, t.path = pool, rest
	}
	settings := settingNames()
	if slices.Contains(settings, t.path) {
		return t, nil
	}
	return t, usage("%s: there is no flag of mockbench replay and no engine setting %q%s", flag, name,
		nearest(name, settings, known))
}

// nearest names what may have been meant.
func nearest(name string, settings []string, known *pflag.FlagSet) string {
	words := slices.Clone(settings)
	for _, s := range settings { // a setting is often named without its table
		if i := strings.LastIndexByte(s, '.'); s[i+1:] == name {
			return fmt.Sprintf(", did you mean %s?", s)
		}
	}
	known.VisitAll(func(f *pflag.Flag) {
		if variable(f.Name) {
			words = append(words, strings.ReplaceAll(f.Name, "-", "_"))
		}
	})
	if near := suggest.Nearest(name, words); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return "; names are num_workers, router_mode, engine.num_gpu_blocks and so on, see --help"
}

// variable reports whether a flag of the replay command changes the run, not what is told of it.
func variable(name string) bool {
	return !ownOutputs[name] && name != "help" && name != "fail-on" && name != "abort-on-fail"
}

// ownOutputs are the flags of a single replay that say where its outcome goes. Those a sweep has too mean the sweep.
var ownOutputs = map[string]bool{"report-json": true, "report-jsonl": true, "telemetry-jsonl": true,
	"telemetry-interval-ms": true,
	"html":                  true, "junit": true, "table": true, "line": true, "quiet": true, "progress": true, "cores": true}

// settingNames returns the dotted names of all settings of a worker, those of its parts included.
func settingNames() (names []string) {
	var walk func(prefix string, s *profiles.Schema)
	walk = func(prefix string, s *profiles.Schema) {
		for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
			names = append(names, prefix+key)
			walk(prefix+key+".", s.Properties[key])
		}
		for _, part := range s.AnyOf {
			walk(prefix, part)
		}
	}
	walk("", profiles.EngineSchema())
	slices.Sort(names)
	return slices.Compact(names)
}

func number(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}
