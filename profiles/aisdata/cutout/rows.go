package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/parquet-go/parquet-go"

	"mockbench/engine/timing/ais"
	"mockbench/profiles/aisdata"
)

// shapes are what the models ask the tables for.
type shapes struct {
	products map[product]bool
	experts  []expertShape
	heads    map[int]bool // elements of a head
	kvHeads  map[int]bool
}

type product struct {
	quant ais.Quant
	n, k  int
}

type expertShape struct{ experts, topK, hidden, inter int }

// shapesOf collects the shapes of all models over 1 to 8 GPUs.
func shapesOf(root *aisdata.Root) (*shapes, error) {
	s := &shapes{products: map[product]bool{}, heads: map[int]bool{}, kvHeads: map[int]bool{}}
	for _, name := range models() {
		m, err := root.Model(name)
		if err != nil {
			return nil, err
		}
		for _, tp := range []int{1, 2, 4, 8} {
			s.add(&m, tp)
		}
	}
	return s, nil
}

func (s *shapes) add(m *ais.Model, tp int) {
	q := m.Quants.GEMM
	if q == ais.FP8Static {
		q = ais.FP8
	}
	asks := func(n, k int) { s.products[product{q, n, k}] = true }
	heads, h := m.Heads/tp, m.Hidden
	s.products[product{ais.BF16, m.Vocab / tp, h}] = true
	if m.Family != ais.Dense {
		s.products[product{ais.BF16, m.Experts, h}] = true
		s.experts = append(s.experts, expertShape{m.Experts, m.TopK, h, m.ExpertInter})
	}
	if m.Family == ais.MLA {
		inter := m.ExpertInter * m.SharedExperts / tp
		asks(2*inter, h)
		asks(h, inter)
		asks(m.QueryRank+m.KVRank+m.RoPEDim, h)
		asks(heads*(m.NoPEDim+m.RoPEDim), m.QueryRank)
		asks(heads*(m.NoPEDim+m.ValueDim), m.KVRank)
		asks(h, heads*m.ValueDim)
		return
	}
	kv := max(m.KVHeads/tp, 1)
	s.heads[m.HeadDim], s.kvHeads[kv] = true, true
	asks((heads+2*kv)*m.HeadDim, h)
	asks(h, heads*m.HeadDim)
	asks(2*m.Inter/tp, h)
	asks(h, m.Inter/tp)
}

// file is a table with the columns that decide which rows are kept.
type file struct {
	index map[string]int
	sites map[product]bool
}

func (f *file) int(r parquet.Row, column string) int {
	i, ok := f.index[column]
	if !ok {
		return 0
	}
	return int(r[i].Int64())
}

func (f *file) text(r parquet.Row, column string) string {
	return string(r[f.index[column]].ByteArray())
}

// attention names the kind of attention that a row measured, "" in other tables.
func (f *file) attention(r parquet.Row) string {
	if _, ok := f.index["num_key_value_heads"]; !ok {
		return ""
	}
	kv := f.int(r, "num_key_value_heads")
	if kv == f.int(r, "num_heads") {
		kv = 0
	}
	return fmt.Sprint(f.text(r, "kernel_source"), f.text(r, "attn_dtype"), f.text(r, "kv_cache_dtype"), kv, f.int(r, "head_dim"), f.int(r, "window_size"))
}

// cut writes the wanted rows of a table.
func (s *shapes) cut(fsys fs.FS, name, target string) error {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	in, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	f := &file{index: map[string]int{}}
	for i, c := range in.Schema().Columns() {
		f.index[c[0]] = i
	}
	rows, err := readAll(in)
	if err != nil {
		return err
	}
	table := path.Base(name)
	if table == "gemm_perf.parquet" {
		f.sites = s.sites(f, rows)
	}
	seen := map[string]bool{}
	rows = slices.DeleteFunc(rows, func(r parquet.Row) bool {
		// One row of every kind of attention, since kernels are ranked by how many kinds they have.
		if k := f.attention(r); k != "" && !seen[k] {
			seen[k] = true
			return false
		}
		return !s.keeps(table, f, r)
	})
	if len(rows) == 0 {
		return nil
	}
	var out bytes.Buffer
	w := parquet.NewWriter(&out, in.Schema(), parquet.Compression(&parquet.Zstd))
	if _, err := w.WriteRows(rows); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	fmt.Printf("%8d of %8d bytes, %6d rows, %s\n", out.Len(), len(data), len(rows), name)
	return write(target, out.Bytes())
}

func readAll(in *parquet.File) (all []parquet.Row, err error) {
	for _, g := range in.RowGroups() {
		rows := g.Rows()
		buffer := make([]parquet.Row, 1024)
		for {
			n, err := rows.ReadRows(buffer)
			for _, r := range buffer[:n] {
				all = append(all, r.Clone())
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, errors.Join(err, rows.Close())
			}
		}
		if err := rows.Close(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *shapes) keeps(table string, f *file, r parquet.Row) bool {
	switch table {
	case "gemm_perf.parquet":
		return f.sites[f.product(r)]
	case "mla_context_module_perf.parquet", "mla_generation_module_perf.parquet":
		return f.text(r, "kv_cache_dtype") == "fp8" && f.text(r, "gemm_type") == "fp8_block"
	case "context_attention_perf.parquet", "generation_attention_perf.parquet":
		return s.heads[f.int(r, "head_dim")] && f.int(r, "window_size") == 0 && s.kvHeads[f.int(r, "num_key_value_heads")] &&
			f.int(r, "num_heads") != f.int(r, "num_key_value_heads")
	case "moe_perf.parquet":
		e := expertShape{f.int(r, "num_experts"), f.int(r, "topk"), f.int(r, "hidden_size"), f.int(r, "inter_size")}
		return slices.Contains(s.experts, e) && f.int(r, "moe_tp_size")*f.int(r, "moe_ep_size") <= 8
	}
	return true
}

func (f *file) product(r parquet.Row) product {
	return product{ais.Quant(f.text(r, "gemm_dtype")), f.int(r, "n"), f.int(r, "k")}
}

// sites returns the measured matrix products that are asked for and, for those that were not measured, the nearest ones.
func (s *shapes) sites(f *file, rows []parquet.Row) map[product]bool {
	measured := map[product]bool{}
	for _, r := range rows {
		measured[f.product(r)] = true
	}
	kept := map[product]bool{}
	for p := range s.products {
		if measured[p] {
			kept[p] = true
			continue
		}
		var near []product
		for q := range measured {
			if q.quant == p.quant {
				near = append(near, q)
			}
		}
		distance := func(q product) float64 {
			return math.Hypot(math.Log2(float64(q.n)/float64(p.n)), math.Log2(float64(q.k)/float64(p.k)))
		}
		slices.SortFunc(near, func(a, b product) int {
			return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a.n, b.n))
		})
		const neighbours = 8 // more than are used: some do not reach far enough, some are as far as others
		for _, q := range near[:min(neighbours, len(near))] {
			kept[q] = true
		}
	}
	return kept
}
