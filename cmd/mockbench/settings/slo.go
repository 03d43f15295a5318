package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
)

// slo reads the limits of latencies; those of --slo go before those of the profile.
func (r *resolver) slo() error {
	if r.from != nil {
		r.s.SLO = r.from.SLO
	}
	if !r.v.Get("--slo").Given() {
		return nil
	}
	l := &r.s.SLO
	places := map[string]*float64{"ttft_ms": &l.TTFT, "itl_ms": &l.ITL, "e2e_ms": &l.E2E}
	for part := range strings.SplitSeq(r.v.Text("--slo"), ",") {
		name, text, _ := strings.Cut(part, "=")
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		place := places[strings.TrimSpace(name)]
		if place == nil || err != nil {
			return &flags.UsageError{Text: fmt.Sprintf("--slo: got %q, allowed: ttft_ms=MS, itl_ms=MS and e2e_ms=MS, separated by commas", part),
				Kind: flags.WrongType}
		}
		*place = x
	}
	err := l.Validate()
	var wrong *engine.SettingError
	if errors.As(err, &wrong) {
		wrong.Setting = "--slo " + strings.TrimPrefix(wrong.Setting, "slo.")
	}
	return err
}
