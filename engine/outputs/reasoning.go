// Package outputs says which token ids a live client is shown: planned ones from a response trace, the boundaries of a
// reasoning span, or filler. Schedulers and their block hashes know nothing of the latter two.
package outputs

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"mockbench/engine"
)

// Reasoning wraps the first part of an answer into a reasoning span.
type Reasoning struct {
	Start uint32  // token id that opens the span
	End   uint32  // token id that closes it
	Ratio float64 // share of the answer inside the span, 0 to 1
}

// ParseReasoning reads the JSON object of --reasoning: start_thinking_token_id, end_thinking_token_id and
// thinking_ratio, all required. Keys it does not know are returned for a warning. null is no reasoning.
func ParseReasoning(text string) (r *Reasoning, unknown []string, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return nil, nil, reasoningError(engine.KindType, text, "must be a JSON object: "+err.Error())
	}
	if fields == nil {
		return nil, nil, nil
	}
	r = &Reasoning{}
	for _, f := range []struct {
		name string
		into any
	}{
		{"start_thinking_token_id", &r.Start}, {"end_thinking_token_id", &r.End}, {"thinking_ratio", &r.Ratio},
	} {
		raw, given := fields[f.name]
		if !given {
			return nil, nil, reasoningError(engine.KindMissing, text, "must have "+f.name)
		}
		if string(raw) == "null" || json.Unmarshal(raw, f.into) != nil {
			return nil, nil, reasoningError(engine.KindType, f.name+" "+string(raw), "must be a number that fits")
		}
		delete(fields, f.name)
	}
	if err := r.Validate(); err != nil {
		return nil, nil, err
	}
	for name := range fields {
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	return r, unknown, nil
}

// Validate returns an *engine.SettingError for a ratio that is not between 0 and 1.
func (r *Reasoning) Validate() error {
	if !(r.Ratio >= 0 && r.Ratio <= 1) {
		return reasoningError(engine.KindRange, fmt.Sprintf("thinking_ratio %v", r.Ratio), "must be between 0 and 1")
	}
	return nil
}

func reasoningError(kind engine.Kind, given, allowed string) error {
	return &engine.SettingError{Setting: "reasoning", Kind: kind, Given: strings.TrimSpace(given), Allowed: allowed}
}

// Span returns the length of the reasoning span of an answer of n tokens, both boundary tokens included: the ratio's
// share rounded down, at least both boundaries and at most the answer; 0 where that share is less than one token.
func (r *Reasoning) Span(n int) int {
	if r == nil || n < 2 {
		return 0
	}
	share := int(math.Floor(float64(n) * r.Ratio))
	if share == 0 {
		return 0
	}
	return min(max(share, 2), n)
}

// Boundary returns the token id at position k of an answer whose span has the given length, if that is a boundary.
func (r *Reasoning) Boundary(k, span int) (id uint32, ok bool) {
	switch {
	case span == 0:
		return 0, false
	case k == 0:
		return r.Start, true
	case k == span-1:
		return r.End, true
	}
	return 0, false
}
