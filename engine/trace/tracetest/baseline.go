// Package tracetest makes the traces that figures of replays are compared on.
package tracetest

import (
	"bufio"
	"fmt"
	"os"
)

// mixer is splitmix64.
type mixer uint64

func (m *mixer) next() uint64 {
	*m += 0x9E3779B97F4A7C15
	z := uint64(*m)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// WriteBaseline writes the baseline trace of n requests, one every gap milliseconds, in Mooncake form with blocks of 512
// tokens: 64 groups that share up to 8 blocks, up to 12 blocks of a request's own, 16 to 255 output tokens.
func WriteBaseline(path string, n, gap int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	random, unique := mixer(42), 1000000
	for i := range n {
		group, shared, own, trim, output := random.next()%64, 1+random.next()%8, 1+random.next()%12, random.next()%512, 16+random.next()%240
		fmt.Fprintf(w, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%d`, i*gap, (shared+own)*512-trim, output, group*16)
		for k := uint64(1); k < shared; k++ {
			fmt.Fprintf(w, ", %d", group*16+k)
		}
		for range own {
			fmt.Fprintf(w, ", %d", unique)
			unique++
		}
		fmt.Fprint(w, "]}\n")
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
