package aiscmd

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"mockbench/engine"
	"mockbench/engine/timing/ais"
	"mockbench/profiles/aisdata"
)

// fetch downloads the data, unless it is there.
func (c *command) fetch() error {
	o := aisdata.FetchOptions{Package: c.pkg, Version: c.version, Dir: c.to}
	if f, ok := c.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		last := int64(-1)
		o.Progress = func(done, total int64) {
			if mb := done >> 20; mb != last {
				last = mb
				fmt.Fprintf(c.stderr, "\r%d of %d MiB", mb, total>>20)
			}
		}
		defer fmt.Fprintln(c.stderr)
	}
	dir, err := aisdata.Fetch(c.ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, dir)
	return nil
}

// explain shows the operators of a prefill, of a decode step, or of both if neither is asked for.
func (c *command) explain() error {
	d, err := c.descriptor()
	if err != nil {
		return err
	}
	root, err := c.root()
	if err != nil {
		return err
	}
	p, err := root.Predict(d)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, p)
	q := p.Model().Quants
	fmt.Fprintf(c.stdout, "formats: products %s, experts %s, KV cache %s, attention over prompts %s\n", q.GEMM, q.MoE, q.KVCache, q.FMHA)
	both := !c.islGiven && !c.contextGiven
	if c.islGiven || both {
		ops, err := p.PrefillOps(c.batch, c.isl-c.prefix, c.prefix)
		if err != nil {
			return err
		}
		title := fmt.Sprintf("prefill of %d x %d tokens, %d of each cached", c.batch, c.isl, c.prefix)
		if err := operators(c.stdout, title, ops); err != nil {
			return err
		}
	}
	if c.contextGiven || both {
		ops, err := p.DecodeOps(c.batch, c.context)
		if err != nil {
			return err
		}
		return operators(c.stdout, fmt.Sprintf("decode step of %d requests with contexts of %d tokens", c.batch, c.context), ops)
	}
	return nil
}

// operators writes the table of a pass.
func operators(w io.Writer, title string, ops []ais.Op) error {
	total, width := ais.Sum(ops), len("operator")
	for _, op := range ops {
		width = max(width, len(op.Name))
	}
	fmt.Fprintf(w, "\n%s\n%-*s  %12s  %6s  %s\n", title, width, "operator", "ms", "share", "source")
	for _, op := range ops {
		fmt.Fprintf(w, "%-*s  %12.6f  %5.1f%%  %s\n", width, op.Name, op.MS, 100*op.MS/total, op.From)
	}
	_, err := fmt.Fprintf(w, "%-*s  %12.6f\n", width, "total", total)
	return err
}

// list shows what the data covers.
func (c *command) list() error {
	root, err := c.root()
	if err != nil {
		return err
	}
	systems, backends := root.Systems(), []engine.Backend{engine.VLLM, engine.SGLang, engine.TRTLLM}
	if c.systemGiven {
		systems = []string{c.system}
	}
	if c.backendGiven {
		backends = []engine.Backend{engine.Backend(c.backend)}
	}
	var found []aisdata.Support
	for _, s := range systems {
		for _, b := range backends {
			if c.ctx.Err() != nil {
				return c.ctx.Err()
			}
			supports, err := root.Coverage(s, b)
			if err != nil {
				return err
			}
			for _, s := range supports {
				if strings.Contains(strings.ToLower(s.Model), strings.ToLower(c.model)) {
					found = append(found, s)
				}
			}
		}
	}
	if c.markdown {
		return markdown(c.stdout, root, found)
	}
	fmt.Fprintln(c.stdout, "data of", root)
	t := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "model\tkind\tformat\tsystem\tbackend\tversion\tfewest GPUs\tmissing")
	for _, s := range found {
		why := ""
		if s.Why != nil && (s.GPUs == 0 || s.Role != engine.Aggregated) {
			why = s.Why.Error()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Model, s.Family, s.Quants.GEMM, s.System, s.Backend, s.Version, s.String(), why)
	}
	return t.Flush()
}

// markdown writes a table with a row for each model and a column for each system; a cell names backends and GPUs.
func markdown(w io.Writer, root *aisdata.Root, found []aisdata.Support) error {
	var models, systems []string
	cells := map[[2]string][]string{}
	seen := map[string]bool{}
	for _, s := range found {
		if !seen["m"+s.Model] {
			seen["m"+s.Model] = true
			models = append(models, s.Model)
		}
		if !seen["s"+s.System] {
			seen["s"+s.System] = true
			systems = append(systems, s.System)
		}
		if s.GPUs == 0 {
			continue
		}
		cell := fmt.Sprintf("%s %s", s.Backend, s.String())
		key := [2]string{s.Model, s.System}
		cells[key] = append(cells[key], cell)
	}
	fmt.Fprintf(w, "Data of version %s.\n\n| model | %s |\n|---|%s\n", root.Version, strings.Join(systems, " | "), strings.Repeat("---|", len(systems)))
	for _, m := range models {
		fmt.Fprintf(w, "| %s |", m)
		for _, s := range systems {
			fmt.Fprintf(w, " %s |", strings.Join(cells[[2]string{m, s}], ", "))
		}
		fmt.Fprintln(w)
	}
	return nil
}
