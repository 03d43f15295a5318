package profiles

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"mockbench/engine"
)

// syntaxError is text that is not TOML.
type syntaxError struct {
	line    int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// unsigned are the settings whose numbers may be larger than TOML has them. Those are written as text.
var unsigned = map[string]bool{"engine.max_num_seqs": true, "engine.max_num_batched_tokens": true,
	"engine.aic_mtp_seed": true, "cuda_graph_reserved_bytes": true, "dynamo.handoff_session_timeout_ms": true}

// limits are the settings that can be switched off, which JSON says with null and TOML with a word.
var limits = map[string]bool{"engine.max_num_seqs": true, "engine.max_num_batched_tokens": true}

const unlimitedWord = "unlimited"

// parseTOML reads TOML into an object, in the order of the text.
func parseTOML(data []byte) (*Object, error) {
	var tree map[string]any
	meta, err := toml.Decode(string(data), &tree)
	if err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return nil, &syntaxError{syntax.Position.Line, syntax.Message}
		}
		return nil, err
	}
	o := NewObject()
	for _, key := range meta.Keys() {
		path := strings.Join(key, ".")
		v, ok := lookUp(tree, key)
		if !ok || strings.Contains(strings.Join(key, ""), ".") {
			return nil, &engine.SettingError{Setting: path, Kind: engine.KindUnknown,
				Allowed: "keys of this form have no meaning here"}
		}
		value, err := fromTOML(path, v)
		if err != nil {
			return nil, err
		}
		if _, isTable := value.(*Object); isTable {
			if _, exists := o.Get(path); exists {
				continue
			}
		}
		o.Set(path, value)
	}
	return o, nil
}

// lookUp finds the value of a key; it is false for a key within an array.
func lookUp(tree map[string]any, key toml.Key) (any, bool) {
	v := any(tree)
	for _, name := range key {
		table, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		v = table[name]
	}
	return v, true
}

func fromTOML(path string, v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		return NewObject(), nil // its keys follow
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, outside(path, v, "must be finite")
		}
		return decimal(v), nil
	case string:
		if _, isNumber := new(big.Int).SetString(v, 10); isNumber && unsigned[path] {
			return json.Number(v), nil
		}
		if v == unlimitedWord && limits[path] {
			return nil, nil
		}
		return v, nil
	case []any:
		return each(v, func(item any) (any, error) { return fromTOML(path, item) })
	case bool:
		return v, nil
	}
	return nil, &engine.SettingError{Setting: path, Kind: engine.KindType,
		Allowed: "values of this type are not used here"}
}

// each converts the items of a list.
func each(list []any, convert func(any) (any, error)) (any, error) {
	out := make([]any, len(list))
	for i, item := range list {
		var err error
		if out[i], err = convert(item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// toTOML returns a value as it is encoded, the inverse of fromTOML.
func toTOML(path string, v any) (any, error) {
	switch v := v.(type) {
	case nil:
		if limits[path] {
			return unlimitedWord, nil
		}
	case json.Number:
		if strings.ContainsAny(v.String(), ".e") {
			return v.Float64()
		}
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		if unsigned[path] {
			return v.String(), nil
		}
	case []any:
		return each(v, func(item any) (any, error) { return toTOML(path, item) })
	case bool, string:
		return v, nil
	}
	return nil, bad(path, engine.KindUnsupported, v, "cannot be written to a profile")
}

// lineOf finds the line that sets a dotted name, or the table that should hold it.
func lineOf(text, setting string) int {
	table, found := "", 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		full := table
		if rest, ok := strings.CutPrefix(line, "["); ok {
			table, _, _ = strings.Cut(strings.Trim(rest, "[ "), "]")
			full = strings.TrimSpace(table)
		} else if key, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			full = strings.TrimPrefix(table+"."+strings.Trim(strings.TrimSpace(key), `"`), ".")
		} else {
			continue
		}
		if full == setting {
			return i + 1
		}
		if strings.HasPrefix(setting, full+".") {
			found = i + 1
		}
	}
	return found
}
