package aisdata

import (
	"fmt"

	"mockbench/engine"
	"mockbench/engine/timing/ais"
)

// Descriptor says which model runs on which system. The zero value of a field that has a default means the default.
type Descriptor struct {
	Model   string
	System  string
	Backend engine.Backend
	Version string // of the backend, or the name of a slot: current, previous, next

	TP, AttentionDP int // default 1
	MoETP, MoEEP    int // default 1; their product is TP x AttentionDP for models with experts
	Nextn           int

	// Quants replace the formats that the model's configuration implies, where they are set.
	Quants ais.Quants

	SystemsPaths []string // where the data is
	Rules        ais.Rules
}

// Prediction is a predictor and what it rests on.
type Prediction struct {
	*ais.Predictor
	Root       *Root
	Descriptor Descriptor
	Version    string // of the backend
}

// Predict finds the data and makes the predictor of a descriptor.
func Predict(d Descriptor) (*Prediction, error) {
	root, err := Find(d.SystemsPaths...)
	if err != nil {
		return nil, err
	}
	return root.Predict(d)
}

// Predict makes the predictor of a descriptor from this data.
func (r *Root) Predict(d Descriptor) (*Prediction, error) {
	reader, sys, m, err := r.open(&d)
	if err != nil {
		return nil, err
	}
	tables, err := reader.load(sys, m)
	if err != nil {
		return nil, err
	}
	if d.Rules == "" {
		d.Rules = ais.Rules013
	}
	p, err := ais.NewPredictor(ais.Setup{Backend: d.Backend, Model: m, Parallel: d.parallel(), Nextn: d.Nextn, Rules: d.Rules}, tables)
	if err != nil {
		return nil, err
	}
	return &Prediction{Predictor: p, Root: r, Descriptor: d, Version: reader.version}, nil
}

// Files lists the tables that Predict would read, as paths in the data.
func (r *Root) Files(d Descriptor) ([]string, error) {
	reader, sys, m, err := r.open(&d)
	if err != nil {
		return nil, err
	}
	return reader.files(sys, m)
}

// open finds out which system, version and model a descriptor means.
func (r *Root) open(d *Descriptor) (*reader, *ais.System, ais.Model, error) {
	none := ais.Model{}
	sys, data, err := r.system(d.System)
	if err != nil {
		return nil, nil, none, err
	}
	s, err := r.versionSlots(d.System, d.Backend)
	if err != nil {
		return nil, nil, none, err
	}
	version, err := s.pick(d.Version)
	if err != nil {
		return nil, nil, none, err
	}
	m, err := r.Model(d.Model)
	if err != nil {
		return nil, nil, none, err
	}
	m.Quants = override(m.Quants, d.Quants)
	reader, err := newReader(r, data, d.System, d.Backend, version)
	return reader, sys, m, err
}

// Probe reports whether the data covers the passes of a role.
func (p *Prediction) Probe(role engine.Role) error {
	if err := p.Predictor.Probe(role); err != nil {
		return fmt.Errorf("%s on %s with %s %s: %w (data: %s)", p.Descriptor.Model, p.Descriptor.System, p.Descriptor.Backend, p.Version, err, p.Root)
	}
	return nil
}

// String says on what the predictions rest.
func (p *Prediction) String() string {
	d := &p.Descriptor
	return fmt.Sprintf("%s on %s with %s %s, rules of %s, data of %s", d.Model, d.System, d.Backend, p.Version, d.Rules, p.Root)
}

func (d *Descriptor) parallel() ais.Parallel {
	return ais.Parallel{TP: max(d.TP, 1), AttentionDP: max(d.AttentionDP, 1), MoETP: max(d.MoETP, 1), MoEEP: max(d.MoEEP, 1)}
}

func override(inferred, given ais.Quants) ais.Quants {
	for _, f := range []struct{ dst, src *ais.Quant }{
		{&inferred.GEMM, &given.GEMM}, {&inferred.MoE, &given.MoE}, {&inferred.KVCache, &given.KVCache}, {&inferred.FMHA, &given.FMHA},
	} {
		if *f.src != "" {
			*f.dst = *f.src
		}
	}
	return inferred
}
