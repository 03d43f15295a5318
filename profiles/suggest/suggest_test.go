package suggest

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"block_size", "backend", "--num-workers"}
	for word, want := range map[string]string{"blocksize": "block_size", "Block-Size": "block_size", "bakend": "backend",
		"--num_worker": "--num-workers", "entirely": "", "": ""} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
