package report

import "mockbench/engine"

// Notes returns what a reader of a report must know of the model behind its figures.
func Notes(cfg engine.Config) (notes []string) {
	switch {
	case cfg.Timing.Type == "fixed":
		notes = append(notes, "pass lengths are fixed: they depend neither on the number of requests nor on their lengths")
	case cfg.Timing.Type == "polynomial":
		notes = append(notes, "decode time depends on the share of the KV pool in use, not on the number of requests")
	}
	if cfg.Nextn > 0 {
		notes = append(notes, "draft tokens cost no time: the gain from speculative decoding is an upper bound")
	}
	return notes
}
