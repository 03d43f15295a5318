package settings

import (
	"mockbench/cmd/mockbench/flags"
	"mockbench/profiles"
)

// TimingModel returns the timing model that flags ask for, before anything checks it.
func TimingModel(v *flags.Values, lookup func(string) (string, bool)) (*profiles.Object, error) {
	r := resolver{v: v, lookup: lookup, s: &Settings{Origins: Origins{}}}
	if err := r.pools(); err != nil {
		return nil, err
	}
	o := profiles.NewObject()
	if err := r.ais(o); err != nil {
		return nil, err
	}
	model, _ := o.Get("engine.timing_model")
	m, _ := model.(*profiles.Object)
	return m, nil
}
