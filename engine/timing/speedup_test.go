package timing

import (
	"testing"

	"mockbench/engine"
)

// speedup_ratio divides all times, decode_speedup_ratio those of decode alone; 0 leaves them as they are.
func TestSpeedupRatios(t *testing.T) {
	m, err := NewModel(engine.TimingConfig{Type: "fixed", PrefillMS: 40, DecodeMS: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		speedup, decodeSpeedup float64
		prefill, decode        engine.Time
	}{
		{1, 1, 40, 8}, {10, 1, 4, 0.8}, {1, 4, 40, 2}, {2, 4, 20, 1}, {0, 1, 40, 8},
	} {
		timer := NewTimer(m, engine.Config{SpeedupRatio: c.speedup, DecodeSpeedupRatio: c.decodeSpeedup})
		_, prefill := timer.Prefill(1, 100, 0)
		_, decode := timer.Decode(1, 100, 1000)
		if prefill != c.prefill || decode != c.decode {
			t.Errorf("ratios %v and %v: got %v ms of prefill and %v ms of decode, want %v and %v",
				c.speedup, c.decodeSpeedup, prefill, decode, c.prefill, c.decode)
		}
	}
}
