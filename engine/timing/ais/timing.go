package ais

import "fmt"

// memo keeps answers. A load asks the same questions again and again, because means are whole numbers.
type memo map[[3]int]float64

// most bounds a memo; a full one starts anew.
const most = 1 << 16

func (m *memo) get(question [3]int, ask func() ([]Op, error)) (float64, error) {
	if ms, ok := (*m)[question]; ok {
		return ms, nil
	}
	ops, err := ask()
	if err != nil {
		return 0, err
	}
	if *m == nil || len(*m) >= most {
		*m = memo{}
	}
	ms := Sum(ops)
	(*m)[question] = ms
	return ms, nil
}

// PrefillMS predicts the prefill part of a pass, 0 if there is nothing to compute.
func (p *Predictor) PrefillMS(requests, meanISL, meanPrefix int) (float64, error) {
	tokens := meanISL - meanPrefix
	if requests < 1 || tokens < 1 {
		return 0, nil
	}
	ms, err := p.prefill.get([3]int{requests, tokens, meanPrefix}, func() ([]Op, error) {
		return p.PrefillOps(requests, tokens, meanPrefix)
	})
	if err != nil {
		return 0, fmt.Errorf("AIS prefill prediction failed: %w", err)
	}
	return max(ms, 0), nil
}

// DecodeMS predicts one decode step, at least 1 ms; 0 if there are no requests.
func (p *Predictor) DecodeMS(requests, meanContext int) (float64, error) {
	if requests < 1 {
		return 0, nil
	}
	ms, err := p.decode.get([3]int{requests, meanContext}, func() ([]Op, error) { return p.DecodeOps(requests, meanContext) })
	if err != nil {
		return 0, fmt.Errorf("AIS decode prediction failed: %w", err)
	}
	return max(ms, 1), nil
}
