package bootstrap

import (
	"fmt"
	"math"
	"strconv"

	"mockbench/engine"
)

// Mode says which tokens a transfer is priced by.
type Mode string

const (
	FullPrompt         Mode = "full_prompt"         // all tokens of the prompt
	DestinationMissing Mode = "destination_missing" // those that the destination does not have, in whole blocks
)

// Timing is what the length of a transfer depends on, as the source tells it.
type Timing struct {
	Mode          Mode     `json:"mode"`
	Tokens        int      `json:"full_prompt_tokens"`
	BytesPerToken *uint64  `json:"kv_bytes_per_token"` // nil: not known
	BandwidthGBps *decimal `json:"bandwidth_gb_s"`     // decimal GB; nil: no delay
}

// TimingOf returns the timing of a prompt of n tokens at a prefill worker.
func TimingOf(c *engine.Config, n int) Timing {
	t := Timing{Mode: Mode(c.KVTransferTimingMode), Tokens: n}
	if c.KVTransferBytesPerToken > 0 {
		bytes := uint64(c.KVTransferBytesPerToken)
		t.BytesPerToken = &bytes
	}
	if c.KVTransferBandwidth != 0 {
		bandwidth := decimal(c.KVTransferBandwidth)
		t.BandwidthGBps = &bandwidth
	}
	return t
}

// Check returns an error for a bandwidth that no link has.
func (t *Timing) Check() error {
	if b := t.BandwidthGBps; b != nil && (*b < 0 || math.IsNaN(float64(*b)) || math.IsInf(float64(*b), 0)) {
		return fmt.Errorf("invalid handoff transfer bandwidth %s", strconv.FormatFloat(float64(*b), 'f', -1, 64))
	}
	return nil
}

// Of returns the length of a transfer of some tokens in ms; ok is false if there is none to speak of.
func (t *Timing) Of(tokens int) (ms float64, ok bool) {
	if t.BytesPerToken == nil || t.BandwidthGBps == nil || !(*t.BandwidthGBps > 0) {
		return 0, false
	}
	return float64(tokens) * float64(*t.BytesPerToken) / (float64(*t.BandwidthGBps) * 1e9) * 1000, true
}

// Delay returns the length of the transfer in ms when the destination misses some tokens; ok is false if there is none
// to speak of.
func (t *Timing) Delay(missing int) (ms float64, ok bool) {
	if t.Mode == DestinationMissing {
		return t.Of(missing)
	}
	return t.Of(t.Tokens)
}
