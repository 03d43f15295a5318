package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"mockbench/engine"
	"mockbench/transport/metrics"
)

// openMetrics registers the families that show the engines, and counts stalls there too.
func (s *serving) openMetrics(registry prometheus.Registerer) (err error) {
	s.shown = make([]*metrics.Worker, s.p.s.Workers)
	s.families, err = metrics.New(metrics.Options{Registerer: registry, Backend: s.p.s.Launch.Engine.Backend, Model: s.name(),
		Namespace: s.pools[0].endpoint.Namespace, Workers: s.p.s.Workers, KVEvents: publishesKVEvents(&s.p.s.Launch.Engine)})
	inReport := s.fleet.stalled
	s.fleet.stalled = func(worker int) {
		inReport(worker)
		s.shown[worker].Stalled()
	}
	return err
}

// publishesKVEvents reports whether workers of this configuration tell routers what is in their caches.
func publishesKVEvents(c *engine.Config) bool {
	return c.EnablePrefixCaching && c.Role != engine.DecodeRole
}
