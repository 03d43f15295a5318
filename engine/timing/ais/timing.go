package ais

import "sync"

// memo keeps answers: a load asks the same questions again and again, because means are whole numbers.
type memo struct {
	mu      sync.Mutex
	answers map[[3]int]float64
}

// most bounds a memo; a full one starts anew.
const most = 1 << 16

// get returns a kept answer, or asks and keeps the sum of the operators.
func (m *memo) get(question [3]int, ask func() ([]Op, error)) (float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ms, ok := m.answers[question]; ok {
		return ms, nil
	}
	ops, err := ask()
	if err != nil {
		return 0, err
	}
	if m.answers == nil || len(m.answers) >= most {
		m.answers = map[[3]int]float64{}
	}
	ms := Sum(ops)
	m.answers[question] = ms
	return ms, nil
}

// Prefill predicts the prefill part of a pass in ms, 0 if there is nothing to compute. Where the data has a gap that
// Probe did not meet, a pass takes twice as long as one of half the tokens.
func (p *Predictor) Prefill(requests, meanISL, meanPrefix int) float64 {
	tokens := meanISL - meanPrefix
	if requests < 1 || tokens < 1 {
		return 0
	}
	ms, err := p.prefill.get([3]int{requests, tokens, meanPrefix}, func() ([]Op, error) {
		return p.PrefillOps(requests, tokens, meanPrefix)
	})
	switch {
	case err == nil:
		return max(ms, 0)
	case tokens > 1:
		return 2 * p.Prefill(requests, meanPrefix+tokens/2, meanPrefix)
	}
	return 2 * p.Prefill(requests/2, meanISL, meanPrefix)
}

// Decode predicts one decode step in ms: at least 1, but 0 if there are no requests. Gaps are bridged as in Prefill.
func (p *Predictor) Decode(requests, _, meanContext, _ int) float64 {
	if requests < 1 {
		return 0
	}
	ms, err := p.decode.get([3]int{requests, meanContext}, func() ([]Op, error) { return p.DecodeOps(requests, meanContext) })
	if err != nil {
		return max(2*p.Decode(requests/2, 0, meanContext, 0), 1)
	}
	return max(ms, 1)
}
