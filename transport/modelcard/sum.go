package modelcard

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
)

// workerTypes numbers the types of workers in the compatibility sum; no type at all is 0.
var workerTypes = map[string]byte{"": 0, "prefill": 1, "decode": 2, "encode": 3, "aggregated": 4}

// summed is what the compatibility sum looks at in a card.
type summed struct {
	DisplayName string             `json:"display_name"`
	SourcePath  string             `json:"source_path"`
	ModelInfo   map[string]anyFile `json:"model_info"`
	Tokenizer   map[string]anyFile `json:"tokenizer"`
	Formatter   map[string]anyFile `json:"prompt_formatter"`
	Template    map[string]anyFile `json:"chat_template_file"`
	Generation  map[string]anyFile `json:"gen_config"`
	Architected uint32             `json:"architectural_max_context_length"`
	Context     uint32             `json:"context_length"`
	BlockSize   uint32             `json:"kv_cache_block_size"`
	WorkerType  string             `json:"worker_type"`
	Needs       [][]string         `json:"needs"`
	Router      json.RawMessage    `json:"router_config"`
	Aliases     []string           `json:"aliases"`
	ExtraFiles  []File             `json:"extra_files"`
	Runtime     struct {
		Context *uint32 `json:"context_length"`
	} `json:"runtime_config"`
}

// anyFile is a file, alone or with the mark that chat templates carry.
type anyFile struct {
	Checksum string
	File     File
}

func (c *summed) context() uint32 {
	if c.Runtime.Context != nil {
		return *c.Runtime.Context
	}
	return cmp.Or(c.Architected, c.Context)
}

// Sum returns the compatibility sum of a published card, one's own or another worker's: frontends serve workers of one
// model together only if their sums are equal. It is BLAKE3 over names, checksums, effective context, block size,
// worker type, needs, router configuration and aliases.
func Sum(card []byte) (string, error) {
	var c summed
	if err := json.Unmarshal(card, &c); err != nil {
		return "", fmt.Errorf("model card: %w", err)
	}
	h := blake3.New()
	put := func(s string) { h.WriteString(s) }
	number := func(n uint32) { h.Write(binary.BigEndian.AppendUint32(nil, n)) }
	put(c.DisplayName)
	put(c.SourcePath)
	for _, named := range []map[string]anyFile{c.ModelInfo, c.Tokenizer, c.Formatter, c.Template, c.Generation} {
		for _, f := range named {
			put(cmp.Or(f.Checksum, f.File.Checksum))
		}
	}
	for _, f := range sortedFiles(c.ExtraFiles) {
		put(f[0] + "\x00" + f[1])
	}
	number(c.context())
	number(c.BlockSize)
	h.Write([]byte{workerTypes[c.WorkerType]})
	number(uint32(len(c.Needs)))
	for _, alternative := range c.Needs {
		number(uint32(len(alternative)))
		for _, t := range alternative {
			h.Write([]byte{workerTypes[t]})
		}
	}
	if len(c.Router) > 0 && string(c.Router) != "null" {
		var compact bytes.Buffer
		if err := json.Compact(&compact, c.Router); err != nil {
			return "", fmt.Errorf("model card: router_config: %w", err)
		}
		router := blake3.Sum256(compact.Bytes())
		h.Write(router[:])
	}
	if len(c.Aliases) > 0 {
		number(uint32(len(c.Aliases)))
		for _, a := range c.Aliases {
			number(uint32(len(a)))
			put(a)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sortedFiles returns name and hash of each file, in order.
func sortedFiles(files []File) [][2]string {
	var list [][2]string
	for _, f := range files {
		list = append(list, [2]string{path.Base(f.Path), strings.TrimPrefix(f.Checksum, "blake3:")})
	}
	slices.SortFunc(list, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return list
}
