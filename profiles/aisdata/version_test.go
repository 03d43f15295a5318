package aisdata

import "testing"

func TestVersionOrder(t *testing.T) {
	ascending := []string{"0.1.dev19262", "0.5.6", "0.5.6.post2", "0.5.10", "1.3.0rc3", "1.3.0rc20", "1.3.0", "1.3.0.post1", "1.3.1"}
	for i, low := range ascending {
		for j, high := range ascending {
			if got, want := compareVersions(low, high) < 0, i < j; got != want {
				t.Errorf("%s < %s: got %v, want %v", low, high, got, want)
			}
		}
	}
}
