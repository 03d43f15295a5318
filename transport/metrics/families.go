// Package metrics shows engines to Prometheus, under the names that dashboards for the real engines know.
//
// [New] registers the families of one engine for all workers of the process, [Families.Worker] the series of one worker,
// at zero: a dashboard sees them before the first request. The series follow the records of the worker.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mockbench/engine"
)

// Options say what is shown.
type Options struct {
	Registerer prometheus.Registerer
	Backend    engine.Backend
	Model      string // name in API answers
	Namespace  string
	Workers    int  // in the process; if there are several, the label worker_id tells their series apart
	KVEvents   bool // those that are no decode workers publish KV events
}

// Families are the metrics of all workers of a process.
type Families struct {
	o      Options
	start  time.Time
	engine engineFamilies

	uptime, dropped, slip *perWorker
	retractions, stalls   *prometheus.CounterVec
}

// engineFamilies are the families named after an engine. All have the same labels, except for the gauges of SGLang.
type engineFamilies struct {
	running, waiting             *prometheus.GaugeVec
	usage                        []*prometheus.GaugeVec // the same value under several names
	hitRate                      *prometheus.GaugeVec   // SGLang only
	preemptions, completed       *prometheus.CounterVec // of one engine kind each; nil otherwise
	firstToken, interToken, e2e  *prometheus.HistogramVec
	gaugeLabels, histogramLabels func(rank int) prometheus.Labels
}

const workerLabel = "worker_id"

// New registers the families. They have no series yet.
func New(o Options) (*Families, error) {
	f := &Families{o: o, start: time.Now(), engine: familiesOf(o)}
	worker := []string{workerLabel}
	f.uptime = newPerWorker(prometheus.GaugeValue, "dynamo_component_uptime_seconds",
		"Total uptime of the DistributedRuntime in seconds", worker, nil)
	f.dropped = newPerWorker(prometheus.CounterValue, "dynamo_component_kv_publisher_engines_dropped_events_total",
		"Total number of raw events dropped by engines before reaching publisher (detected via event_id gaps)",
		[]string{workerLabel, "dynamo_component"}, prometheus.Labels{"dynamo_namespace": o.Namespace})
	f.slip = newPerWorker(prometheus.CounterValue, "mockbench_clock_slip_seconds_total",
		"Time that passes started late and that was not made up for.", worker, nil)
	own := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mockbench_" + name, Help: help}, worker)
	}
	f.retractions = own("retractions_total", "Running requests that SGLang put back into its queue for want of memory.")
	f.stalls = own("stalls_total", "Times a rank could not make progress with any of its requests.")
	collectors := append(f.engine.collectors(), f.uptime, f.slip, f.retractions, f.stalls)
	if o.KVEvents {
		collectors = append(collectors, f.dropped)
	}
	for _, c := range collectors {
		if err := o.Registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Discovery shows how often something that discovery had lost was put back: what value returns at each scrape.
func (f *Families) Discovery(value func() uint64) error {
	return f.o.Registerer.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "mockbench_discovery_restored_total",
		Help: "Records written again and leases taken anew because discovery had lost them."}, func() float64 { return float64(value()) }))
}

// familiesOf returns the families of an engine, unregistered.
func familiesOf(o Options) engineFamilies {
	if o.Backend == engine.SGLang {
		return sglangFamilies(o)
	}
	return vllmFamilies(o)
}

// vllmFamilies are vLLM's names with a label for the rank; TensorRT-LLM's differ in their prefix.
func vllmFamilies(o Options) engineFamilies {
	n := namer{string(o.Backend) + ":", labels(o, "engine", "model_name")}
	set := func(rank int) prometheus.Labels {
		return prometheus.Labels{"engine": strconv.Itoa(rank), "model_name": o.Model}
	}
	return engineFamilies{
		running:     n.gauge("num_requests_running", "Number of requests currently running on GPU."),
		waiting:     n.gauge("num_requests_waiting", "Number of requests waiting to be processed."),
		preemptions: n.counter("num_preemptions_total", "Cumulative number of request preemptions."),
		usage: []*prometheus.GaugeVec{
			n.gauge("kv_cache_usage_perc", "KV-cache usage as a fraction of available cache blocks."),
			n.gauge("gpu_cache_usage_perc", "Compatibility alias for KV-cache usage as a fraction of available cache blocks."),
		},
		firstToken: n.histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.",
			.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
		interToken: n.histogram("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.",
			.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
		e2e: n.histogram("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.",
			.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680),
		gaugeLabels: set, histogramLabels: set,
	}
}

// sglangFamilies are SGLang's names: one series for all ranks of a worker.
func sglangFamilies(o Options) engineFamilies {
	n := namer{"sglang:", labels(o, "model_name", "engine_type")}
	g := namer{"sglang:", labels(o, "model_name", "engine_type", "tp_rank", "pp_rank", "moe_ep_rank")}
	set := func(int) prometheus.Labels {
		return prometheus.Labels{"model_name": o.Model, "engine_type": string(engine.SGLang)}
	}
	return engineFamilies{
		running:   g.gauge("num_running_reqs", "The number of running requests."),
		waiting:   g.gauge("num_queue_reqs", "The number of queued requests."),
		hitRate:   g.gauge("cache_hit_rate", "Cache hit rate."),
		completed: n.counter("num_requests_total", "Number of requests processed."),
		firstToken: n.histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.",
			.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400),
		interToken: n.histogram("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.",
			.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8),
		e2e: n.histogram("e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds",
			.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 1200, 1800, 2400),
		histogramLabels: set,
		gaugeLabels: func(rank int) prometheus.Labels {
			l := set(rank)
			l["tp_rank"], l["pp_rank"], l["moe_ep_rank"] = "0", "0", "0"
			return l
		},
	}
}

func (e *engineFamilies) collectors() (list []prometheus.Collector) {
	list = []prometheus.Collector{e.running, e.waiting, e.firstToken, e.interToken, e.e2e}
	for _, u := range e.usage {
		list = append(list, u)
	}
	if e.hitRate != nil {
		list = append(list, e.hitRate)
	}
	for _, c := range []*prometheus.CounterVec{e.preemptions, e.completed} {
		if c != nil {
			list = append(list, c)
		}
	}
	return list
}

// labels returns the labels of a family: the engine's own, and the worker's if there are several.
func labels(o Options, own ...string) []string {
	if o.Workers > 1 {
		return append(own, workerLabel)
	}
	return own
}

// namer makes families with a common prefix and labels.
type namer struct {
	prefix string
	labels []string
}

func (n namer) gauge(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: n.prefix + name, Help: help}, n.labels)
}

func (n namer) counter(name, help string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: n.prefix + name, Help: help}, n.labels)
}

func (n namer) histogram(name, help string, buckets ...float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: n.prefix + name, Help: help, Buckets: buckets}, n.labels)
}
