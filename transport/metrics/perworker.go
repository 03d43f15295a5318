package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// perWorker is a family with one series for each worker, whose values are asked for at each scrape.
type perWorker struct {
	kind prometheus.ValueType
	desc *prometheus.Desc

	mu     sync.Mutex
	series []series
}

type series struct {
	label string
	value func() float64
}

func newPerWorker(kind prometheus.ValueType, name, help string, labels []string, constant prometheus.Labels) *perWorker {
	return &perWorker{kind: kind, desc: prometheus.NewDesc(name, help, labels, constant)}
}

// add adds the series of a worker.
func (p *perWorker) add(worker string, value func() float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series = append(p.series, series{worker, value})
}

// Describe implements prometheus.Collector.
func (p *perWorker) Describe(out chan<- *prometheus.Desc) { out <- p.desc }

// Collect implements prometheus.Collector.
func (p *perWorker) Collect(out chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.series {
		out <- prometheus.MustNewConstMetric(p.desc, p.kind, s.value(), s.label)
	}
}
