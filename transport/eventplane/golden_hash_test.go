package eventplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"mockbench/kv"
)

func goldenHashing(t *testing.T) {
	var file struct {
		Hash []struct {
			Name  string
			Input struct {
				BlockSize int `json:"block_size"`
				Tokens    []uint32
				Eagle     bool       `json:"is_eagle"`
				LoRA      string     `json:"lora_name"`
				Namespace string     `json:"cache_namespace"`
				Media     [][]uint64 `json:"mm_hashes_per_block"`
			}
			Expect struct {
				Seed     uint64
				Sequence []uint64 `json:"sequence_hash"`
				Local    []uint64 `json:"tokens_hash"`
			}
		}
		Steps []struct {
			Name  string
			Input struct {
				Parent uint64
				Child  uint64 `json:"child_tokens_hash"`
			}
			Expect struct {
				Sequence uint64 `json:"sequence_hash"`
			}
		} `json:"chain_steps"`
		Raw []struct {
			Name  string
			Input struct {
				ASCII string
				Seed  uint64
			}
			Expect struct{ Hash uint64 }
		} `json:"xxh3"`
		Synthetic []struct {
			Name  string
			Input struct {
				ID    string `json:"request_id"`
				Count int
			}
			Expect struct {
				Tokens []uint32 `json:"token_ids"`
			}
		} `json:"synthetic_output"`
	}
	if !goldenFile(t, "hashing.json", &file) {
		return
	}
	for _, c := range file.Hash {
		t.Run(c.Name, func(t *testing.T) {
			in := c.Input
			seed := kv.Seed(in.LoRA, in.Namespace)
			if c.Expect.Seed != 0 && seed != c.Expect.Seed {
				t.Errorf("seed %d, want %d", seed, c.Expect.Seed)
			}
			window := in.BlockSize
			if in.Eagle {
				window++
			}
			local, sequence := []uint64{}, []uint64{}
			for at, b := 0, 0; in.BlockSize > 0 && at+window <= len(in.Tokens); at, b = at+in.BlockSize, b+1 {
				var media []uint64
				if b < len(in.Media) {
					media = in.Media[b]
				}
				hash := kv.SeededHash(seed, in.Tokens[at:at+window], media)
				local = append(local, hash)
				if b > 0 {
					hash = kv.SequenceHash(sequence[b-1], hash)
				}
				sequence = append(sequence, hash)
			}
			if !slices.Equal(local, c.Expect.Local) || !slices.Equal(sequence, c.Expect.Sequence) {
				t.Errorf("got %d %d, want %d %d", local, sequence, c.Expect.Local, c.Expect.Sequence)
			}
			if in.Eagle || in.Media != nil || in.BlockSize == 0 || seed != kv.Seed("", "") {
				return
			}
			plainLocal, plainSequence := kv.AppendHashes(nil, nil, in.Tokens, in.BlockSize)
			if !slices.Equal(plainLocal, c.Expect.Local) || !slices.Equal(plainSequence, c.Expect.Sequence) {
				t.Errorf("AppendHashes gives %d %d", plainLocal, plainSequence)
			}
		})
	}
	for _, c := range file.Steps {
		if got := kv.SequenceHash(c.Input.Parent, c.Input.Child); got != c.Expect.Sequence {
			t.Errorf("%s: %d, want %d", c.Name, got, c.Expect.Sequence)
		}
	}
	for _, c := range file.Raw {
		if got := xxh3.HashStringSeed(c.Input.ASCII, c.Input.Seed); got != c.Expect.Hash {
			t.Errorf("%s: %d, want %d", c.Name, got, c.Expect.Hash)
		}
	}
	for _, c := range file.Synthetic {
		var id [16]byte
		copy(id[:], fromHex(t, strings.ReplaceAll(c.Input.ID, "-", "")))
		for i, want := range c.Expect.Tokens {
			if got := kv.SyntheticToken(id, i); got != want {
				t.Errorf("%s: token %d is %d, want %d", c.Name, i, got, want)
			}
		}
	}
}
