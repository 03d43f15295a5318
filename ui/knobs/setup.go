// Package knobs lists the settings of a run that can change while it goes on: how each is read and written, its unit,
// its steps, and when a change comes into force.
package knobs

import (
	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/workload"
)

// Setup is the settings of a run that can change.
type Setup struct {
	Engine engine.Config // of each worker
	Load   workload.Options
	Policy router.Policy
	Model  router.Model
	SLO    SLO

	HasLoad, HasRouter, HasSLO bool // whether there is something that the settings belong to
}

// SLO is limits of latencies.
type SLO = report.Limits

// Defaults returns the setup of a run that says nothing, for the same engine.
func (s Setup) Defaults() Setup {
	d := Setup{Engine: engine.DefaultConfig(s.Engine.Backend), Policy: router.KV, Model: router.DefaultModel(),
		HasLoad: s.HasLoad, HasRouter: s.HasRouter, HasSLO: s.HasSLO}
	d.Load = workload.Options{Rate: 0, PromptMean: 256, OutputMean: 128, Turns: 1}
	return d
}

// validate checks what the settings have to do with each other.
func (s *Setup) validate() error {
	if err := s.Engine.Validate(); err != nil {
		return err
	}
	if s.HasLoad {
		if err := s.Load.Validate(); err != nil {
			return err
		}
	}
	if s.HasRouter {
		if err := s.Model.Validate(); err != nil {
			return err
		}
	}
	return s.SLO.Validate()
}

// host returns the host tier for writing: a copy that no other setup shares.
func (s *Setup) host() *engine.HostOffload {
	h := engine.DefaultHostOffload(0)
	if s.Engine.HostOffload != nil {
		*h = *s.Engine.HostOffload
	}
	s.Engine.HostOffload = h
	return h
}
