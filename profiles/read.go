package profiles

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"mockbench/engine"
	"mockbench/profiles/suggest"
)

// field is a setting: how its value is read into its place, and what the schema says of it.
type field struct {
	read   func(path string, v any) error // path is the full dotted name
	schema *Schema
}

// reading is the same setting, read in another way.
func (f field) reading(read func(path string, v any) error) field { return field{read, f.schema} }

// fields are the known keys of an object.
type fields map[string]field

func bad(path string, kind engine.Kind, v any, allowed string) error {
	return &engine.SettingError{Setting: path, Kind: kind, Given: kindOf(v), Allowed: allowed}
}

// read gives every key of an object to its field, in the order of the text. The first failure is the one reported.
func (f fields) read(path string, v any) error {
	o, ok := v.(*Object)
	if !ok {
		return bad(path, engine.KindType, v, "must be an object")
	}
	for _, key := range o.keys {
		name := key
		if path != "" {
			name = path + "." + key
		}
		setting, known := f[key]
		if !known {
			return &engine.SettingError{Setting: name, Kind: engine.KindUnknown, Allowed: "no such setting" + f.hint(path, key)}
		}
		if err := setting.read(name, o.values[key]); err != nil {
			return err
		}
	}
	return nil
}

// hint tells what may have been meant by an unknown key.
func (f fields) hint(path, key string) string {
	if path == "" && key == "engine_type" {
		return ", use engine.backend"
	}
	known := slices.Sorted(maps.Keys(f))
	if near := suggest.Nearest(key, known); near != "" {
		return ", did you mean " + near + "?"
	}
	l := DefaultLoad()
	for _, table := range []struct {
		name   string
		fields fields
	}{{"engine", engineFields(new(Launch))}, {"load", l.fields()}, {"dynamo", dynamoFields(new(Launch))}} {
		if _, ok := table.fields[key]; ok && table.name != path {
			return ", it belongs under " + table.name
		}
	}
	return ", known are " + strings.Join(known, ", ")
}

// integer reads a whole number within low and high.
func integer[T int | uint64 | uint32](dst *T, low, high uint64) field {
	return field{schema: integerSchema(low, high), read: func(path string, v any) error {
		n, ok := v.(json.Number)
		if !ok {
			return bad(path, engine.KindType, v, "must be a whole number")
		}
		i, ok := new(big.Int).SetString(n.String(), 10)
		if !ok {
			return bad(path, engine.KindType, v, "must be a whole number, without point or exponent")
		}
		if !i.IsUint64() || i.Uint64() < low || i.Uint64() > high {
			return bad(path, engine.KindRange, v, rangeText(i, low, high))
		}
		*dst = T(i.Uint64())
		return nil
	}}
}

// rangeText says what is allowed; a bound that no sensible value comes near is left out.
func rangeText(given *big.Int, low, high uint64) string {
	if high >= maxInt && given.Cmp(new(big.Int).SetUint64(low)) < 0 {
		return fmt.Sprintf("must be at least %d", low)
	}
	return fmt.Sprintf("must be between %d and %d", low, high)
}

const (
	maxInt = math.MaxInt
	maxU64 = math.MaxUint64
)

// float reads a number.
func float(dst *float64) field {
	return field{schema: &Schema{Type: types{"number"}}, read: func(path string, v any) error {
		n, ok := v.(json.Number)
		if !ok {
			return bad(path, engine.KindType, v, "must be a number")
		}
		f, err := strconv.ParseFloat(n.String(), 64)
		if err != nil {
			return bad(path, engine.KindRange, v, "must be finite")
		}
		*dst = f
		return nil
	}}
}

// optional reads a value that null leaves unset.
func optional[T any](dst **T, setting func(*T) field) field {
	return field{schema: setting(new(T)).schema.orNull(), read: func(path string, v any) error {
		if v == nil {
			*dst = nil
			return nil
		}
		value := new(T)
		if err := setting(value).read(path, v); err != nil {
			return err
		}
		*dst = value
		return nil
	}}
}

func boolean(dst *bool) field {
	return field{schema: &Schema{Type: types{"boolean"}}, read: func(path string, v any) error {
		b, ok := v.(bool)
		if !ok {
			return bad(path, engine.KindType, v, "must be true or false")
		}
		*dst = b
		return nil
	}}
}

func text[S ~string](dst *S) field {
	return field{schema: &Schema{Type: types{"string"}}, read: func(path string, v any) error {
		s, ok := v.(string)
		if !ok {
			return bad(path, engine.KindType, v, "must be text")
		}
		*dst = S(s)
		return nil
	}}
}

// word reads one of a closed list of words.
func word[S ~string](dst *S, allowed ...S) field {
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	return field{schema: wordSchema(words...), read: func(path string, v any) error {
		s, ok := v.(string)
		if !ok {
			return bad(path, engine.KindType, v, "must be text")
		}
		if !slices.Contains(allowed, S(s)) {
			return bad(path, engine.KindUnknown, v, "allowed: "+strings.Join(words, ", "))
		}
		*dst = S(s)
		return nil
	}}
}

// object reads the settings of an object.
func object(f fields) field { return field{f.read, objectSchema(f)} }

// requiring is the same object, in which some settings must be given.
func (f field) requiring(names ...string) field {
	f.schema.Required = names
	return f.reading(func(path string, v any) error {
		if err := f.read(path, v); err != nil {
			return err
		}
		for _, name := range names {
			if _, ok := v.(*Object).Get(name); !ok {
				return missing(path + "." + name)
			}
		}
		return nil
	})
}

// orNull lets null mean unset: the setting is not read.
func orNull(f field) field {
	return field{schema: f.schema.orNull(), read: func(path string, v any) error {
		if v == nil {
			return nil
		}
		return f.read(path, v)
	}}
}

// unlimited lets null mean that a limit is switched off.
func unlimited(dst *uint64) field {
	number := integer(dst, 0, maxU64)
	return field{schema: integerSchema(1, maxU64).orNull(), read: func(path string, v any) error {
		if v == nil {
			*dst = engine.Unlimited
			return nil
		}
		return number.read(path, v)
	}}
}

// unsupported is a setting that is recognised and refused: none may be ignored.
func unsupported() field { return field{refuse, &Schema{Type: types{"null"}}} }

func refuse(path string, v any) error {
	if v == nil {
		return nil
	}
	if list, ok := v.([]any); ok && len(list) == 0 {
		return nil
	}
	return &engine.SettingError{Setting: path, Kind: engine.KindUnsupported, Allowed: "not supported by this build"}
}
