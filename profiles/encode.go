package profiles

import (
	"bytes"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"mockbench/engine"
	"mockbench/engine/report"
)

// New returns the profile of one worker with settings that are in force: what differs from the defaults. load is nil if
// requests come from a frontend.
func New(l *Launch, load *Load) *Profile { return &Profile{Workers: 1, Launch: l.given(), Load: load} }

// given returns the settings of the launch that are not the defaults of its backend. A profile with them resolves to an
// equal launch.
func (l *Launch) given() *Object {
	usual := &Launch{Engine: engine.DefaultConfig(l.Engine.Backend), DPSize: 1, TensorParallelSize: 1,
		Dynamo: Dynamo{HandoffSessionTimeoutMS: defaultHandoffMS, EnableLocalIndexer: true}}
	usual.Engine.Backend = engine.VLLM // which is what no backend means
	if l.BlocksExplicit {
		usual.Engine.NumGPUBlocks = 0 // differs even if it was given with the value of the default
	}
	o := l.Canonical().without(usual.Canonical())
	o.Delete("num_gpu_blocks_is_explicit")
	if _, ok := o.Get("engine.num_gpu_blocks"); ok && !l.BlocksExplicit {
		o.Set("num_gpu_blocks_is_explicit", false)
	}
	if h := l.Engine.HostOffload; h != nil {
		host, _ := o.Get("engine.native_host_offload")
		o.Set("engine.native_host_offload", host.(*Object).without(hostObject(engine.DefaultHostOffload(0))))
	}
	return o
}

// without returns the settings that differ from those of another object. Blocks of settings that are given as a whole
// are kept as a whole.
func (o *Object) without(usual *Object) *Object {
	out := NewObject()
	for _, k := range o.keys {
		v, other := o.values[k], usual.values[k]
		mine, isObject := v.(*Object)
		theirs, both := other.(*Object)
		switch {
		case isObject && both && !indivisible(k):
			if inner := mine.without(theirs); len(inner.keys) > 0 {
				out.put(k, inner)
			}
		case reflect.DeepEqual(v, other):
		case isObject:
			out.put(k, mine.Clone())
		default:
			out.put(k, v)
		}
	}
	return out
}

// indivisible reports whether a block of settings has no defaults of its own.
func indivisible(key string) bool { return key == "timing_model" }

// Encode returns the text of the profile. Reading it gives an equal profile.
func (p *Profile) Encode() ([]byte, error) {
	o := NewObject()
	o.Set("version", number(Version))
	if p.Description != "" {
		o.Set("description", p.Description)
	}
	if p.PrefillWorkers > 0 {
		o.Set("prefill_workers", number(p.PrefillWorkers))
		o.Set("decode_workers", number(p.DecodeWorkers))
	} else {
		o.Set("workers", number(p.Workers))
	}
	for _, k := range p.Launch.keys {
		o.put(k, p.Launch.values[k])
	}
	if p.Load != nil {
		o.Set("load", p.Load.Object())
	}
	if p.SLO != (report.Limits{}) {
		o.Set("slo", different(sloSettings(&p.SLO), sloSettings(new(report.Limits))))
	}
	var b bytes.Buffer
	err := encodeTable(&b, "", o)
	return b.Bytes(), err
}

// encodeTable writes the values of a table and then the tables within it.
func encodeTable(b *bytes.Buffer, path string, o *Object) error {
	if path != "" {
		if !o.onlyTables() {
			fmt.Fprintf(b, "\n[%s]\n", path)
		}
		path += "."
	}
	for _, k := range o.keys {
		if _, isTable := o.values[k].(*Object); isTable {
			continue
		}
		v, err := toTOML(path+k, o.values[k])
		if err != nil {
			return err
		}
		if s, ok := v.(string); ok && !utf8.ValidString(s) {
			return bad(path+k, engine.KindType, s, "is not UTF-8 text")
		}
		line, err := toml.Marshal(map[string]any{k: v})
		if err != nil {
			return err
		}
		b.Write(line)
	}
	for _, k := range o.keys {
		if inner, isTable := o.values[k].(*Object); isTable {
			if err := encodeTable(b, path+k, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// onlyTables reports whether all values are tables, whose names imply the name of this one.
func (o *Object) onlyTables() bool {
	for _, v := range o.values {
		if _, isTable := v.(*Object); !isTable {
			return false
		}
	}
	return len(o.keys) > 0
}
