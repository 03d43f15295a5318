package engine

import (
	"fmt"
	"strconv"
	"strings"
)

// defaultAcceptRates are the conditional acceptance rates of draft tokens if none are given.
const defaultAcceptRates = "0.85,0.3,0,0,0"

// maxNextn is the largest number of draft tokens.
const maxNextn = 5

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// AcceptRates returns the conditional acceptance rates, one for each of the Nextn draft tokens: the given list cut or
// filled up with zeros. It is nil without speculative decoding.
func (c *Config) AcceptRates() ([]float64, error) {
	if c.Nextn == 0 {
		return nil, nil
	}
	text := c.NextnAcceptRates
	if blank(text) {
		text = defaultAcceptRates
	}
	rates := make([]float64, c.Nextn)
	for i, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		rate, err := strconv.ParseFloat(item, 64)
		if err != nil {
			return nil, wrong("aic_nextn_accept_rates", KindType, fmt.Sprintf("%q", item), "must be numbers separated by commas")
		}
		if !(rate >= 0 && rate <= 1) {
			return nil, wrong("aic_nextn_accept_rates", KindRange, item, "must be between 0 and 1")
		}
		if i < len(rates) {
			rates[i] = rate
		}
	}
	return rates, nil
}

func (c *Config) checkDrafts() *SettingError {
	if c.Nextn == 0 {
		if c.NextnAcceptRates != "" {
			return wrong("aic_nextn_accept_rates", KindMissing, c.NextnAcceptRates, "needs engine.aic_nextn")
		}
		return nil
	}
	if c.Nextn < 1 || c.Nextn > maxNextn {
		return wrong("aic_nextn", KindRange, c.Nextn, fmt.Sprintf("must be between 1 and %d", maxNextn))
	}
	if _, err := c.AcceptRates(); err != nil {
		return err.(*SettingError)
	}
	if c.DecodeSpeedupRatio != 1 {
		return wrong("decode_speedup_ratio", KindConflict, c.DecodeSpeedupRatio,
			"must be 1 with engine.aic_nextn, whose bursts are the acceleration")
	}
	return nil
}
