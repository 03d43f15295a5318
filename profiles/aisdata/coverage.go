package aisdata

import (
	"fmt"

	"mockbench/engine"
	"mockbench/engine/timing/ais"
)

// Support says whether a model works on a system with a backend.
type Support struct {
	Model   string
	Family  ais.Family
	Quants  ais.Quants
	System  string
	Backend engine.Backend
	Version string
	GPUs    int         // fewest of 1, 2, 4, 8 that hold the model and are measured; 0 = none
	Role    engine.Role // aggregated, or the only one of prefill and decode that is covered
	Why     error       // of what is missing, nil for aggregated workers
}

// Coverage tries every model that can be modelled on a system with a backend, each over 1, 2, 4 and 8 GPUs that share
// attention and split the experts. Systems without that backend give an empty list.
func (r *Root) Coverage(system string, b engine.Backend) ([]Support, error) {
	sys, data, err := r.system(system)
	if err != nil {
		return nil, err
	}
	slots, err := r.versionSlots(system, b)
	if err != nil || len(r.dirs(data+"/gemm/"+string(b))) == 0 {
		return nil, err
	}
	models := r.modelled()
	reader, err := newReader(r, data, system, b, slots.current)
	if err != nil {
		return nil, err
	}
	tables, err := reader.load(sys, models...)
	if err != nil {
		return nil, err
	}
	var list []Support
	for _, m := range models {
		s := Support{Model: m.Name, Family: m.Family, Quants: m.Quants, System: system, Backend: b, Version: slots.current}
		s.try(m, tables)
		list = append(list, s)
	}
	return list, nil
}

// modelled lists the known models whose architecture can be taken apart.
func (r *Root) modelled() []ais.Model {
	var models []ais.Model
	for _, name := range r.Models() {
		if m, err := r.Model(name); err == nil {
			models = append(models, m)
		}
	}
	return models
}

// try finds the smallest placement that works, for workers that do both parts of a pass if there is one.
func (s *Support) try(m ais.Model, tables *ais.Tables) {
	for _, role := range []engine.Role{engine.Aggregated, engine.DecodeRole, engine.PrefillRole} {
		for _, gpus := range []int{1, 2, 4, 8} {
			err := s.works(m, tables, gpus, role)
			if err == nil {
				s.GPUs, s.Role = gpus, role
				return
			}
			if role == engine.Aggregated {
				s.Why = err
			}
		}
	}
}

func (s *Support) works(m ais.Model, tables *ais.Tables, gpus int, role engine.Role) error {
	p, err := ais.NewPredictor(ais.Setup{Backend: s.Backend, Model: m, Rules: ais.Rules013,
		Parallel: ais.Parallel{TP: gpus, AttentionDP: 1, MoETP: 1, MoEEP: gpus}}, tables)
	if err != nil {
		return err
	}
	if err := p.Probe(role); err != nil {
		return err
	}
	_, err = p.GPUBlocks(ais.Capacity{BlockSize: 64, MaxBatchedTokens: 8192, Fraction: ais.DefaultFraction(s.Backend)})
	return err
}

// String is the number of GPUs, with the role if it is not an aggregated one.
func (s *Support) String() string {
	switch {
	case s.GPUs == 0:
		return "-"
	case s.Role == engine.Aggregated:
		return fmt.Sprint(s.GPUs)
	}
	return fmt.Sprintf("%d, %s only", s.GPUs, s.Role)
}
