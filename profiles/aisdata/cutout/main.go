// Command cutout makes the data that tests use: from the whole data, the rows that some models need on some systems.
//
//	go run ./profiles/aisdata/cutout FROM TO
//
// FROM is a folder with the Python package of the data, TO gets a smaller one of the same form. Neighbours of matrix
// products that were not measured are kept, so that estimates do not change.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mockbench/engine"
	"mockbench/profiles/aisdata"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: cutout FROM TO")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Models, systems and backends of the recorded cases.
func models() []string {
	return []string{"meta-llama/Meta-Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-70B", "nvidia/Llama-3.1-70B-Instruct-FP8", "Qwen/Qwen3-32B",
		"Qwen/Qwen3-32B-FP8", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-30B-A3B-FP8", "deepseek-ai/DeepSeek-V3"}
}

func systems() []string { return []string{"h100_sxm", "h200_sxm", "b200_sxm", "gb200"} }

func backends() []engine.Backend { return []engine.Backend{engine.VLLM, engine.SGLang, engine.TRTLLM} }

func run(from, to string) error {
	root, err := aisdata.Open(from)
	if err != nil {
		return err
	}
	shapes, err := shapesOf(root)
	if err != nil {
		return err
	}
	target := filepath.Join(to, filepath.Base(root.Path))
	files := map[string]bool{}
	for _, system := range systems() {
		for _, b := range backends() {
			for _, m := range models() {
				read, err := root.Files(aisdata.Descriptor{Model: m, System: system, Backend: b})
				if err != nil {
					return err
				}
				for _, f := range read {
					files[f] = true
				}
			}
		}
	}
	for f := range files {
		if err := shapes.cut(root.FS, f, filepath.Join(target, f)); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	return texts(root, target)
}

// texts copies what is not a table: descriptions of the systems, settings of the data, shapes of the models, versions.
func texts(root *aisdata.Root, target string) error {
	stems := make([]string, 0, len(models()))
	for _, m := range models() {
		stems = append(stems, strings.ReplaceAll(m, "/", "--"))
	}
	err := fs.WalkDir(root.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !wanted(name, stems) {
			return err
		}
		data, err := fs.ReadFile(root.FS, name)
		if err != nil {
			return err
		}
		return write(filepath.Join(target, name), data)
	})
	if err != nil {
		return err
	}
	info := target + "-" + root.Version + ".dist-info"
	data, err := os.ReadFile(root.Path + "-" + root.Version + ".dist-info/METADATA")
	if err != nil {
		return err
	}
	return write(filepath.Join(info, "METADATA"), data)
}

func wanted(name string, stems []string) bool {
	dir, base := filepath.Split(name)
	stem, isModel := strings.CutSuffix(base, "_config.json")
	switch {
	case dir == "model_configs/" && isModel:
		return slices.Contains(stems, strings.TrimSuffix(stem, "_hf_quant"))
	case dir == "systems/" && strings.HasSuffix(base, ".yaml"):
		system := strings.TrimSuffix(base, ".yaml")
		return slices.Contains(systems(), system) || slices.Contains([]string{"query_versions", "attention_lane_defaults", "perf_data_reuse_manifest"}, system)
	case base == "reuse.yaml":
		return slices.ContainsFunc(systems(), func(s string) bool {
			rest, found := strings.CutPrefix(dir, "systems/data/"+s+"/")
			family, _, _ := strings.Cut(rest, "/")
			return found && slices.Contains([]string{"attention", "gemm", "mla", "mla_bmm", "moe", "quantize"}, family)
		})
	}
	return false
}

func write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
