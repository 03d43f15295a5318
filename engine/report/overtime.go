package report

import (
	"math"

	"mockbench/engine/report/page"
)

// plotPoints is how many points a curve over time has at most.
const plotPoints = 600

// timeAxis is simulated time.
var timeAxis = page.Axis{Label: "simulated time, s"}

// curve is a series over time whose points are means over as many samples as are left out. What is no number is passed
// over.
func curve(name string, n int, at func(i int) (seconds, value float64)) page.Series {
	s := page.Series{Name: name}
	step := (n + plotPoints - 1) / plotPoints
	for i := 0; i < n; i += max(step, 1) {
		var x, y float64
		count := 0
		for k := i; k < min(n, i+max(step, 1)); k++ {
			if a, b := at(k); !math.IsNaN(b) {
				x, y, count = x+a, y+b, count+1
			}
		}
		if count > 0 {
			s.Points = append(s.Points, page.Point{X: x / float64(count), Y: y / float64(count)})
		}
	}
	return s
}

// TelemetryPlots returns plots of the telemetry samples of a run.
func TelemetryPlots(samples []Fields) []page.Plot {
	if len(samples) < 2 {
		return nil
	}
	plot := func(title, y string, series ...page.Series) page.Plot {
		return page.Plot{Title: title, X: timeAxis, Y: page.Axis{Label: y}, Series: series}
	}
	line := func(name string, value func(f Fields) float64) page.Series {
		return curve(name, len(samples), func(i int) (float64, float64) {
			return samples[i].float("sampled_at_ms") / 1000, value(samples[i])
		})
	}
	traffic := func(f Fields) Fields { inner, _ := f.Get("traffic"); t, _ := inner.(Fields); return t }
	rate := func(key string) func(Fields) float64 {
		return func(f Fields) float64 {
			t := traffic(f)
			if s := t.float("duration_s"); s > 0 {
				return t.float(key) / s
			}
			return math.NaN()
		}
	}
	mean := func(key, count string) func(Fields) float64 {
		return func(f Fields) float64 {
			if t := traffic(f); t.float(count) > 0 {
				return t.float(key)
			}
			return math.NaN()
		}
	}
	gauges := []string{"decode_scheduler_metrics"}
	if list, _ := samples[0].Get("prefill_scheduler_metrics"); len(asList(list)) > 0 {
		gauges = append(gauges, "prefill_scheduler_metrics")
	}
	var requests, cache []page.Series
	for _, pool := range gauges {
		name := map[bool]string{true: "prefill ", false: ""}[pool == "prefill_scheduler_metrics"]
		requests = append(requests, line(name+"running", gaugeSum(pool, "running_requests")), line(name+"waiting", gaugeSum(pool, "waiting_requests")))
		cache = append(cache, line(name+"blocks in use, %", func(f Fields) float64 {
			return 100 * gaugeSum(pool, "active_blocks")(f) / gaugeSum(pool, "total_blocks")(f)
		}))
	}
	return []page.Plot{
		plot("Requests a second", "requests/s", line("arriving", rate("arriving_requests")), line("completed", rate("completed_requests"))),
		plot("Requests in the engines", "requests", requests...),
		plot("KV cache", "%", cache...),
		plot("Mean TTFT of an interval", "ms", line("TTFT", mean("avg_ttft_ms", "ttft_count"))),
		plot("Mean gap between tokens of an interval", "ms", line("ITL", mean("avg_itl_ms", "itl_count"))),
	}
}

func asList(v any) []Fields { list, _ := v.([]Fields); return list }

// gaugeSum adds up a figure over the ranks of a pool.
func gaugeSum(pool, key string) func(Fields) float64 {
	return func(f Fields) (sum float64) {
		v, _ := f.Get(pool)
		for _, g := range asList(v) {
			sum += g.float(key)
		}
		return sum
	}
}

// Plots returns plots of the columns of a window that ends at a simulated time in milliseconds; the newest column, which
// is not over, is left out.
func (w *Window) Plots(now float64) []page.Plot {
	n := len(w.Columns) - 1
	if n < 2 {
		return nil
	}
	line := func(name string, value func(c *Column) float64) page.Series {
		return curve(name, n, func(i int) (float64, float64) {
			return (now - float64(n-i)*columnSpan) / 1000, value(&w.Columns[i])
		})
	}
	plot := func(title, y string, series ...page.Series) page.Plot {
		return page.Plot{Title: title, X: timeAxis, Y: page.Axis{Label: y}, Series: series}
	}
	positive := func(x float32) float64 {
		if x == 0 {
			return math.NaN()
		}
		return float64(x)
	}
	const seconds = columnSpan / 1000.0
	return []page.Plot{
		plot("Tokens a second", "tokens/s", line("prefill", func(c *Column) float64 { return float64(c.Prefill) / seconds }),
			line("output", func(c *Column) float64 { return float64(c.Output) / seconds })),
		plot("Requests in the engines", "requests", line("running", func(c *Column) float64 { return float64(c.Running) }),
			line("waiting", func(c *Column) float64 { return float64(c.Waiting) })),
		plot("KV cache", "%", line("blocks in use, %", func(c *Column) float64 {
			if c.Blocks == 0 {
				return math.NaN()
			}
			return 100 * float64(c.Active) / float64(c.Blocks)
		})),
		plot("Greatest TTFT of an interval", "ms", line("TTFT", func(c *Column) float64 { return positive(c.MaxTTFT) })),
		plot("Greatest gap between tokens of an interval", "ms", line("ITL", func(c *Column) float64 { return positive(c.MaxITL) })),
		plot("Preemptions an interval", "preemptions", line("preemptions", func(c *Column) float64 { return float64(c.Preemptions) })),
	}
}
