package profiles

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"mockbench/engine"
)

// Schema is a JSON Schema (2020-12), as far as settings need it. Editors read it to complete and check a file while it
// is written.
type Schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        types              `json:"type,omitempty"`
	Const       string             `json:"const,omitempty"`
	Enum        []*string          `json:"enum,omitempty"` // nil is null
	Minimum     json.Number        `json:"minimum,omitempty"`
	Maximum     json.Number        `json:"maximum,omitempty"`
	Default     any                `json:"default,omitempty"` // a value of an Object
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Closed      *bool              `json:"additionalProperties,omitempty"` // false: no other properties
	AnyOf       []*Schema          `json:"anyOf,omitempty"`
}

// types are the allowed types of a value.
type types []string

// MarshalJSON writes a single type as a word.
func (t types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

const dialect = "https://json-schema.org/draft/2020-12/schema"

// EngineSchema describes the canonical JSON of a worker's configuration, which --extra-engine-args reads.
func EngineSchema() *Schema {
	s := objectSchema(launchFields(new(Launch)))
	s.describe("")
	s.usual(defaults(false))
	s.Dialect, s.Title = dialect, "mockbench engine configuration"
	return s
}

// ProfileSchema describes a TOML profile.
func ProfileSchema() *Schema {
	s := objectSchema(launchFields(new(Launch)))
	maps.Copy(s.Properties, objectSchema(new(Profile).fields()).Properties)
	s.describe("")
	s.usual(defaults(true))
	s.withoutNull()
	for setting := range unsigned {
		s.at(setting).orText(setting)
	}
	s.Dialect, s.Title = dialect, "mockbench profile"
	return s
}

// defaults are the settings of a launch whose defaults do not depend on other settings.
func defaults(localIndexer bool) *Object {
	l := &Launch{Engine: engine.DefaultConfig(engine.VLLM), DPSize: 1, TensorParallelSize: 1,
		Dynamo: Dynamo{HandoffSessionTimeoutMS: defaultHandoffMS, EnableLocalIndexer: localIndexer}}
	o := l.Canonical()
	o.Delete("num_gpu_blocks_is_explicit")
	inner, _ := o.Get("engine")
	inner.(*Object).Delete("block_size")
	inner.(*Object).Delete("timing_model")
	inner.(*Object).Set("native_host_offload", hostObject(engine.DefaultHostOffload(0)))
	host, _ := inner.(*Object).Get("native_host_offload")
	host.(*Object).Delete("num_host_blocks")
	load := DefaultLoad()
	o.Set("load.prompt_mean", number(load.PromptMean))
	o.Set("load.output_mean", number(load.OutputMean))
	o.Set("load.routing", string(load.Routing))
	for _, s := range routerSettings(&load.Router) {
		o.Set("load.router."+s.name, s.value)
	}
	return o
}

// usual notes the defaults of settings; there may be more of them than settings.
func (s *Schema) usual(o *Object) {
	for _, k := range o.keys {
		p, v := s.Properties[k], o.values[k]
		inner, isObject := v.(*Object)
		switch {
		case p == nil || v == nil:
		case isObject:
			p.usual(inner)
		default:
			p.Default = v
		}
	}
}

// orNull is the same schema, with null allowed.
func (s *Schema) orNull() *Schema {
	c := *s
	c.Type = slices.Clone(s.Type)
	if slices.Contains(c.Type, "null") {
		return &c
	}
	c.Type = append(c.Type, "null")
	if c.Enum != nil {
		c.Enum = append(slices.Clone(s.Enum), nil)
	}
	return &c
}

// withoutNull takes null out, which TOML does not have, and with it the settings that can only be null.
func (s *Schema) withoutNull() {
	s.Type = slices.DeleteFunc(s.Type, func(t string) bool { return t == "null" })
	s.Enum = slices.DeleteFunc(s.Enum, func(word *string) bool { return word == nil })
	for name, p := range s.Properties {
		if p.withoutNull(); len(p.Type) == 0 && p.AnyOf == nil && p.Const == "" {
			delete(s.Properties, name)
		}
	}
}

// orText allows text where TOML has no number for a value.
func (s *Schema) orText(setting string) {
	text := &Schema{Type: types{"string"}, Description: "a number beyond 64 bits with sign"}
	if limits[setting] {
		text.Description += `, or "` + unlimitedWord + `"`
	}
	s.AnyOf = []*Schema{{Type: s.Type, Minimum: s.Minimum, Maximum: s.Maximum}, text}
	s.Type, s.Minimum, s.Maximum = nil, "", ""
}

func integerSchema(low, high uint64) *Schema {
	s := &Schema{Type: types{"integer"}, Minimum: json.Number(strconv.FormatUint(low, 10))}
	if high < maxInt {
		s.Maximum = json.Number(strconv.FormatUint(high, 10))
	}
	return s
}

func wordSchema(words ...string) *Schema {
	s := &Schema{Type: types{"string"}}
	for _, w := range words {
		s.Enum = append(s.Enum, &w)
	}
	return s
}

func objectSchema(f fields) *Schema {
	s := &Schema{Type: types{"object"}, Properties: map[string]*Schema{}, Closed: new(bool)}
	for name, setting := range f {
		s.Properties[name] = setting.schema
	}
	return s
}

// timingSchema is one form a kind of timing model.
func timingSchema() *Schema {
	ms := func() *Schema { return &Schema{Type: types{"number"}, Minimum: "0"} }
	form := func(kind string, settings map[string]*Schema, required ...string) *Schema {
		p := map[string]*Schema{"type": {Const: kind}}
		maps.Copy(p, settings)
		return &Schema{Properties: p, Required: append([]string{"type"}, required...)}
	}
	return &Schema{Type: types{"object"}, AnyOf: []*Schema{
		form("polynomial", nil),
		form("fixed", map[string]*Schema{"prefill_ms": ms(), "decode_ms": ms()}, "prefill_ms", "decode_ms"),
		form("external", map[string]*Schema{"provider": wordSchema("dynamo_profile", "ais", "aic"),
			"config": {Type: types{"object"}}}, "provider"),
	}}
}
