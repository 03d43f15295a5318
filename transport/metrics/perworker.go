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
	labels []string
	value  func() float64
}

func newPerWorker(kind prometheus.ValueType, name, help string, labels []string, constant prometheus.Labels) *perWorker {
	return &perWorker{kind: kind, desc: prometheus.NewDesc(name, help, labels, constant)}
}

// add adds the series of a worker with the values of its labels.
func (p *perWorker) add(value func() float64, labels ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.series = append(p.series, series{labels, value})
}

// Describe implements prometheus.Collector.
func (p *perWorker) Describe(out chan<- *prometheus.Desc) { out <- p.desc }

// Collect implements prometheus.Collector.
func (p *perWorker) Collect(out chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.series {
		out <- prometheus.MustNewConstMetric(p.desc, p.kind, s.value(), s.labels...)
	}
}
