package metrics

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"mockbench/engine"
	"mockbench/transport/requestplane"
)

// family is what a scrape says of a family besides its values.
type family struct {
	Help, Type string
	Labels     []string
	Buckets    []string `json:",omitempty"`
}

func golden(t *testing.T, file string) []byte {
	t.Helper()
	root := os.Getenv("MOCKBENCH_GOLDEN")
	if root == "" {
		root = filepath.Join("..", "..", "testdata", "golden")
	}
	data, err := os.ReadFile(filepath.Join(root, "discovery", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// scrape returns the families of a registry.
func scrape(t *testing.T, r prometheus.Gatherer) map[string]family {
	t.Helper()
	list, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]family{}
	for _, f := range list {
		one := family{Help: f.GetHelp(), Type: strings.ToLower(f.GetType().String()), Labels: []string{}}
		for _, l := range f.Metric[0].Label {
			one.Labels = append(one.Labels, l.GetName())
		}
		slices.Sort(one.Labels)
		if h := f.Metric[0].Histogram; h != nil {
			for _, b := range h.Bucket {
				one.Buckets = append(one.Buckets, strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
			}
			one.Buckets = append(one.Buckets, "+Inf")
		}
		out[f.GetName()] = one
	}
	return out
}

// newWorker registers everything that one worker process shows.
func newWorker(t *testing.T, backend engine.Backend, workers, ranks int) (*prometheus.Registry, []*Worker) {
	t.Helper()
	registry := prometheus.NewRegistry()
	server, err := requestplane.Listen(requestplane.Options{Host: "127.0.0.1", Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	f, err := New(Options{Registerer: registry, Backend: backend, Model: "m", Namespace: "dynamo",
		Workers: workers, KVEvents: true})
	if err != nil {
		t.Fatal(err)
	}
	var list []*Worker
	for i := range workers {
		name := requestplane.Name{Namespace: "dynamo", Component: "backend", Endpoint: "generate", Instance: uint64(i + 10)}
		nothing := func(context.Context, *requestplane.Request, *requestplane.Stream) {}
		if _, err := server.Handle(name, requestplane.HandlerFunc(nothing)); err != nil {
			t.Fatal(err)
		}
		list = append(list, f.Worker(WorkerOptions{ID: name.InstanceHex(), Ranks: ranks, Component: "backend"}))
	}
	return registry, list
}

func TestGoldenDiscoveryMetrics(t *testing.T) {
	var cases []struct {
		Name   string
		Expect struct{ Families map[string]family }
	}
	if err := json.Unmarshal(golden(t, "metrics-families.json"), &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			backend := engine.Backend(c.Name[strings.LastIndexByte(c.Name, '_')+1:])
			registry, _ := newWorker(t, backend, 1, 2)
			got := scrape(t, registry)
			for name := range got {
				if _, recorded := c.Expect.Families[name]; recorded {
					continue
				}
				// Ours alone, and those of the engine, which are there before the first request.
				idle := strings.Contains(c.Name, "idle") && strings.HasPrefix(name, string(backend)+":")
				if !idle && !strings.HasPrefix(name, "mockbench_") {
					t.Errorf("%s is not recorded", name)
				}
				delete(got, name)
			}
			if diff := cmp.Diff(c.Expect.Families, got); diff != "" {
				t.Errorf("families (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("sample", sampleSeries)
}

// sampleSeries compares the series of the recorded scrape: everything before the value of a line, endpoints of
// recovery apart, which this package does not make.
func sampleSeries(t *testing.T) {
	registry, _ := newWorker(t, engine.VLLM, 1, 2)
	list, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range list {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			got[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = true
		}
	}
	names := strings.NewReplacer("${INSTANCE_HEX}", "a", "m_vllm", "m")
	seen := 0
	for _, line := range strings.Split(string(golden(t, "metrics-sample-vllm.txt")), "\n") {
		if line == "" || line[0] == '#' || strings.Contains(line, "_bucket{") || strings.Contains(line, "worker_kv_query_source") {
			continue
		}
		series, _, _ := strings.Cut(names.Replace(line), " ")
		name, labels, _ := strings.Cut(series, "{")
		if base := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count"); base != name {
			name = base
		}
		if series = name + "{" + labels; labels == "" {
			series += "}"
		}
		if seen++; !got[series] {
			t.Errorf("%s is missing", series)
		}
	}
	if seen < 30 {
		t.Errorf("only %d series compared", seen)
	}
}

// value returns the value of a series whose labels contain those given as name=value; of a histogram, its count.
func value(t *testing.T, r prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	list, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			if has(m, labels) {
				return valueOf(m)
			}
		}
	}
	t.Fatalf("no series %s %v", name, labels)
	return 0
}

func has(m *dto.Metric, labels []string) bool {
	for _, want := range labels {
		found := slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName()+"="+l.GetValue() == want })
		if !found {
			return false
		}
	}
	return true
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	case m.Counter != nil:
		return m.Counter.GetValue()
	}
	return m.Gauge.GetValue()
}
