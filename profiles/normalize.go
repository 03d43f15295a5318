package profiles

import (
	"bytes"
	"encoding/json"
	"strconv"

	"mockbench/engine"
)

// Normalize reads an engine configuration from JSON text and resolves it; empty text is an empty object. The text is
// never taken for the name of a file. Errors are *engine.SettingError, or say where the text is not JSON.
func Normalize(text []byte) (*Launch, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	o, err := ParseJSON("engine configuration", text)
	if err != nil {
		return nil, err
	}
	return Resolve(o)
}

// EngineLimit returns a whole number of the section engine by its name there, such as max_num_seqs. It is not bounded
// where the canonical JSON says null. Another name, or a setting that is no whole number, is an *engine.SettingError.
func (l *Launch) EngineLimit(name string) (limit uint64, bounded bool, err error) {
	v, ok := l.Canonical().Get("engine")
	section, isObject := v.(*Object)
	if ok && isObject {
		v, ok = section.Raw(name)
	}
	if !ok {
		return 0, false, &engine.SettingError{Setting: "engine." + name, Kind: engine.KindUnknown, Allowed: "no such setting"}
	}
	if v == nil {
		return 0, false, nil
	}
	text, err := json.Marshal(v)
	if err == nil {
		limit, err = strconv.ParseUint(string(text), 10, 64)
	}
	if err != nil {
		return 0, false, &engine.SettingError{Setting: "engine." + name, Kind: engine.KindType, Given: string(text),
			Allowed: "is no limit, which is a whole number or null"}
	}
	return limit, true, nil
}

// PerformanceConfig returns the descriptor of an AIS timing model; ok is false for every other timing model.
func (l *Launch) PerformanceConfig() (descriptor *Object, ok bool) {
	if l.AIS == nil {
		return nil, false
	}
	v, _ := l.Canonical().Get("engine.timing_model.config")
	descriptor, ok = v.(*Object)
	return descriptor, ok
}
