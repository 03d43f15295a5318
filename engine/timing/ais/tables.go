package ais

import (
	"fmt"
	"maps"
	"slices"
)

// Tables are the measurements of one system and backend, ready for queries. They are never changed.
type Tables struct {
	sys *System

	gemm                 map[Quant]*gemmTable
	computeScale         *scaleTable
	scaleMatrix          *scaleTable
	context, generation  *attention
	latent               latentTables
	allReduce            map[int]curve // by GPUs; elements
	nccl                 map[NCCLKey]curve
	moe                  map[MoEKey]curve
	moeFewTokens         map[MoEKey]curve // kernels for few tokens of TensorRT-LLM
	mostAllReduce        int
	collectives          map[string]int // most GPUs measured, by operation
	availableGEMMFormats []Quant
}

// System returns the system that was measured.
func (t *Tables) System() *System { return t.sys }

// scaleTable holds the latency of computing or applying the scales of an (m, k) matrix. It fills a rectangle.
type scaleTable struct {
	*grid
	low, high [2]int
}

func newScaleTable(rows []row) *scaleTable {
	t := &scaleTable{grid: newGrid(pointsOf(rows), -1, nil)}
	for axis := range t.low {
		t.low[axis], t.high[axis] = int(rows[0].at[axis]), int(rows[0].at[axis])
		for _, r := range rows {
			t.low[axis], t.high[axis] = min(t.low[axis], int(r.at[axis])), max(t.high[axis], int(r.at[axis]))
		}
	}
	return t
}

// at interpolates within the rectangle; beyond it the edge counts. It also returns how many times larger the matrix is
// than the one at the edge.
func (t *scaleTable) at(m, k int) (ms, larger float64) {
	atM, atK := min(max(m, t.low[0]), t.high[0]), min(max(k, t.low[1]), t.high[1])
	return t.grid.at(atM, atK, 1).ms, float64(m) * float64(k) / (float64(atM) * float64(atK))
}

// product is the latency of an (m, k) x (k, n) product. Static scales save computing them, and with inputs that are
// already quantised also applying them.
func (t *Tables) product(q Quant, m, n, k int, quantised bool) (latency, error) {
	measured := q
	if q == FP8Static {
		measured = FP8
	}
	table := t.gemm[measured]
	if table == nil {
		return latency{}, &MissingError{Table: "gemm_perf", Wanted: gemmKey{measured, n, k}.String(),
			Nearest: "formats " + names(t.availableGEMMFormats)}
	}
	l, err := table.at(t.sys, m, n, k)
	if err != nil || q != FP8Static {
		return l, err
	}
	if t.computeScale == nil || t.scaleMatrix == nil {
		return latency{}, &MissingError{Table: "computescale_perf, scale_matrix_perf", Wanted: "quant_dtype=fp8"}
	}
	saved, _ := t.computeScale.at(m, k)
	if quantised {
		ms, larger := t.scaleMatrix.at(m, k)
		saved += ms * larger
	}
	return latency{max(l.ms-saved, t.sys.gemmLight(q, float64(m), float64(n), float64(k))), Estimated}, nil
}

// allReduced is the latency of a sum over this many GPUs.
func (t *Tables) allReduced(elements, gpus int) (latency, error) {
	if gpus <= 1 {
		return latency{}, nil
	}
	if t.sys.Node.GPUs == 72 && gpus > 4 {
		return t.collective("all_reduce", elements, gpus)
	}
	measured := min(gpus, t.mostAllReduce)
	c, ok := t.allReduce[measured]
	if !ok {
		return latency{}, &MissingError{Table: "custom_allreduce_perf", Wanted: fmt.Sprintf("num_gpus=%d", gpus),
			Nearest: fmt.Sprint("num_gpus ", slices.Sorted(maps.Keys(t.allReduce)))}
	}
	return t.spread(c.scaled(elements, linear), measured, gpus), nil
}

// collective is the latency of an NCCL operation over this many GPUs.
func (t *Tables) collective(operation string, elements, gpus int) (latency, error) {
	if gpus <= 1 {
		return latency{}, nil
	}
	measured := min(gpus, t.collectives[operation])
	c, ok := t.nccl[NCCLKey{operation, measured}]
	if !ok {
		e := &MissingError{Table: "nccl_perf", Wanted: fmt.Sprintf("op_name=%s num_gpus=%d", operation, gpus)}
		if len(t.collectives) > 0 {
			e.Nearest = fmt.Sprintf("most GPUs of each operation %v", t.collectives)
		}
		return latency{}, e
	}
	return t.spread(c.scaled(elements, linear), measured, gpus), nil
}

func linear(x int) float64 { return float64(x) }

// spread carries a latency over to more GPUs than were measured.
func (t *Tables) spread(l latency, measured, gpus int) latency {
	if gpus > measured {
		return latency{l.ms * t.sys.beyond(measured, gpus), Estimated}
	}
	return l
}

// experts is the latency of a layer of experts.
func (t *Tables) experts(key MoEKey, tokens int) (latency, error) {
	const fewTokens = 128
	tables := []map[MoEKey]curve{t.moe}
	if key.Quant == NVFP4 && tokens <= fewTokens {
		tables = []map[MoEKey]curve{t.moeFewTokens, t.moe}
	}
	uniform := key
	uniform.Distribution = "uniform"
	for _, table := range tables {
		for _, k := range []MoEKey{key, uniform} {
			c, ok := table[k]
			if !ok {
				continue
			}
			if len(c.x) == 1 && tokens < c.first() {
				return latency{}, &MissingError{Table: "moe_perf", Wanted: fmt.Sprintf("num_tokens=%d", tokens),
					Nearest: fmt.Sprintf("num_tokens=%d", c.first())}
			}
			return c.scaled(tokens, func(x int) float64 { return t.sys.moeLight(key, x) }), nil
		}
	}
	return latency{}, missing("moe_perf", key, maps.Keys(t.moe))
}
