package report

import (
	"math"
	"strings"
	"testing"

	"mockbench/engine/report/limits"
)

// Curves over time have a bounded number of points, whose means are those of the samples.
func TestCurve(t *testing.T) {
	s := curve("x", 10_000, func(i int) (float64, float64) {
		if i%2 == 1 {
			return float64(i), math.NaN()
		}
		return float64(i), float64(i)
	})
	if len(s.Points) == 0 || len(s.Points) > plotPoints {
		t.Fatalf("%d points", len(s.Points))
	}
	for _, p := range s.Points {
		if p.X != p.Y || math.IsNaN(p.Y) {
			t.Fatalf("%+v is no mean of points on the diagonal", p)
		}
	}
}

func TestTelemetryPlots(t *testing.T) {
	sample := func(at float64, running int) Fields {
		return Fields{{Key: "sampled_at_ms", Value: at}, {Key: "traffic", Value: Fields{{Key: "duration_s", Value: 1.0}, {Key: "arriving_requests", Value: 3},
			{Key: "avg_ttft_ms", Value: 20.0}, {Key: "ttft_count", Value: 1}}}, {Key: "prefill_scheduler_metrics", Value: []Fields{}},
			{Key: "decode_scheduler_metrics", Value: []Fields{{{Key: "running_requests", Value: running}, {Key: "active_blocks", Value: 5},
				{Key: "total_blocks", Value: 10}}, {{Key: "running_requests", Value: 1}, {Key: "active_blocks", Value: 0}, {Key: "total_blocks", Value: 10}}}}}
	}
	plots := TelemetryPlots([]Fields{sample(0, 1), sample(1000, 2)})
	if len(plots) != 5 {
		t.Fatalf("%d plots", len(plots))
	}
	if p := plots[1].Series[0].Points; len(p) != 2 || p[1].X != 1 || p[1].Y != 3 {
		t.Errorf("running requests: %+v", p)
	}
	if p := plots[2].Series[0].Points; p[0].Y != 25 {
		t.Errorf("blocks in use: %+v", p)
	}
	if TelemetryPlots(nil) != nil {
		t.Error("plots of nothing")
	}
}

func TestOneLine(t *testing.T) {
	cfg := config(64, 8192, 10, 2)
	r := drive(t, cfg, batch(1, 32, 1), forever, Options{})
	line := OneLine("ok", r.Source(), []limits.Outcome{{OK: true}, {}})
	for _, want := range []string{"status=ok num_requests=1 completed_requests=1 duration_ms=10 ", " p99_ttft_ms=10 ", " p99_itl_ms=null ", " limits=1/2"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is missing in %s", want, line)
		}
	}
	if strings.ContainsAny(line, "\n\t") {
		t.Errorf("%q is more than a line", line)
	}
}
