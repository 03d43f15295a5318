package requestplane

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the families of the request plane, named and labelled as dashboards for the reference expect them.
type metrics struct {
	requests, requestBytes, responseBytes, cancelled, errors *prometheus.CounterVec
	inflight                                                 *prometheus.GaugeVec
	duration                                                 *prometheus.HistogramVec

	rejected                           prometheus.Counter
	transit, permitWait, firstResponse prometheus.Histogram
}

var endpointLabels = []string{"dynamo_namespace", "dynamo_component", "dynamo_endpoint", "worker_id"}

// newMetrics registers the families; without a registerer they are counted and shown to nobody.
func newMetrics(r prometheus.Registerer, l *limiter) (*metrics, error) {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	m := &metrics{
		requests:      counters("requests_total", "Total number of requests processed by work handler"),
		requestBytes:  counters("request_bytes_total", "Total number of bytes received in requests by work handler"),
		responseBytes: counters("response_bytes_total", "Total number of bytes sent in responses by work handler"),
		cancelled:     counters("cancellation_total", "Total number of requests cancelled by work handler"),
		errors:        counters("errors_total", "Total number of errors in work handler processing", "error_type"),
		inflight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dynamo_component_inflight_requests",
			Help: "Number of requests currently being processed by work handler"}, endpointLabels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dynamo_component_request_duration_seconds",
			Help:    "Time spent processing requests by work handler",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}}, endpointLabels),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{Name: "dynamo_rejection_request_total",
			Help: "Requests rejected because the worker is at capacity (engine in-flight limit and Dynamo queue both full)"}),
		transit: histogram("network_transit_seconds", "Frontend-to-backend network transit time (cross-process wall-clock, seconds)",
			.0001, .0005, .001, .005, .01, .05, .1, .5, 1),
		permitWait: histogram("permit_wait_seconds", "Time spent waiting for a worker-pool permit (seconds)",
			.0001, .001, .01, .05, .1, .5, 1, 5, 10, 30, 60),
		firstResponse: histogram("time_to_first_response_seconds",
			"Backend processing time from handle_payload entry to prologue sent (seconds)",
			.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60),
	}
	families := append([]prometheus.Collector{m.requests, m.requestBytes, m.responseBytes, m.cancelled, m.errors, m.inflight,
		m.duration, m.rejected, m.transit, m.permitWait, m.firstResponse}, limiterGauges(l)...)
	for _, f := range families {
		if err := r.Register(f); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dynamo_component_" + name, Help: help},
		append(labels, endpointLabels...))
}

func histogram(name, help string, buckets ...float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dynamo_work_handler_" + name, Help: help, Buckets: buckets})
}

func limiterGauges(l *limiter) []prometheus.Collector {
	running := func() float64 { n, _ := l.load(); return float64(n) }
	waiting := func() float64 { _, n := l.load(); return float64(n) }
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	return []prometheus.Collector{
		gauge("dynamo_engine_request", "Current number of requests being handled by the engine (--engine-request-limit)", running),
		gauge("dynamo_request_queue", "Current number of requests queued in Dynamo not yet in the engine (--dynamo-request-queue-limit)", waiting),
		gauge("dynamo_work_handler_pool_active_tasks", "Current number of active worker-pool tasks (permits in use)", running),
		gauge("dynamo_work_handler_queue_depth", "Current items in the bounded work queue awaiting dispatcher pickup", waiting),
		gauge("dynamo_work_handler_pool_capacity", "Configured worker-pool capacity (total permits)",
			func() float64 { return float64(l.limits.Running) }),
		gauge("dynamo_work_handler_queue_capacity", "Configured capacity of the bounded work queue",
			func() float64 { return float64(l.limits.Waiting) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dynamo_work_handler_enqueue_rejected_total",
			Help: "Times enqueuing work failed because the dispatcher channel was closed"}, func() float64 { return 0 }),
	}
}

// endpointMetrics are the series of one endpoint.
type endpointMetrics struct {
	requests, requestBytes, responseBytes, cancelled prometheus.Counter
	inflight                                         prometheus.Gauge
	duration                                         prometheus.Observer
	errors                                           *prometheus.CounterVec
	transit                                          prometheus.Histogram
}

func (m *metrics) endpoint(n Name) endpointMetrics {
	labels := prometheus.Labels{"dynamo_namespace": n.Namespace, "dynamo_component": n.Component,
		"dynamo_endpoint": n.Endpoint, "worker_id": n.InstanceHex()}
	return endpointMetrics{
		requests: m.requests.With(labels), requestBytes: m.requestBytes.With(labels),
		responseBytes: m.responseBytes.With(labels), cancelled: m.cancelled.With(labels), inflight: m.inflight.With(labels),
		duration: m.duration.With(labels), errors: m.errors.MustCurryWith(labels), transit: m.transit,
	}
}

func (m endpointMetrics) accept(payload []byte, sent, received time.Time) {
	m.requests.Inc()
	m.requestBytes.Add(float64(len(payload)))
	if !sent.IsZero() {
		m.transit.Observe(max(0, received.Sub(sent).Seconds()))
	}
}
