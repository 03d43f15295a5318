package vllmwire

import (
	"time"

	"mockbench/kv"
	"mockbench/transport/wire"
)

// appendBatchHead adds a batch up to its n events: an array of time in Unix seconds, events and rank.
func appendBatchHead(b []byte, now time.Time, n int) []byte {
	b = append(b, 0x93)
	b = wire.AppendFloat(b, float64(now.Unix())+float64(now.Nanosecond())/1e9)
	return wire.AppendArray(b, n)
}

func appendRank(b []byte, rank int) []byte { return wire.AppendUint(b, uint64(rank)) }

func rankSize(rank int) int {
	var scratch [9]byte
	return len(appendRank(scratch[:0], rank))
}

// appendEvents adds the device events of a group and returns how many there are.
func appendEvents(b []byte, events *kv.Events, blockSize int) ([]byte, int) {
	n, tokens := 0, events.Tokens
	for _, e := range events.List {
		if e.Tier != kv.Device {
			continue
		}
		n++
		sequence, _ := events.Blocks(e)
		if e.Kind == kv.Removed {
			b = append(b, "\x83\xa4type\xacBlockRemoved"...)
			b = appendHashes(b, sequence)
		} else {
			own := min(int(e.Count)*blockSize, len(tokens))
			b = appendStored(b, e, sequence, tokens[:own], blockSize)
			tokens = tokens[own:]
		}
		b = append(b, "\xa9group_idx\x00"...)
	}
	return b, n
}

func appendStored(b []byte, e kv.Event, sequence []uint64, tokens []uint32, blockSize int) []byte {
	b = append(b, "\x86\xa4type\xabBlockStored"...)
	b = appendHashes(b, sequence)
	b = append(b, "\xb1parent_block_hash"...)
	if e.HasParent {
		b = wire.AppendUint(b, e.Parent)
	} else {
		b = wire.AppendNil(b)
	}
	b = append(b, "\xa9token_ids"...)
	b = wire.AppendArray(b, len(tokens))
	for _, t := range tokens {
		b = wire.AppendUint(b, uint64(t))
	}
	b = append(b, "\xaablock_size"...)
	return wire.AppendUint(b, uint64(blockSize))
}

func appendHashes(b []byte, hashes []uint64) []byte {
	b = append(b, "\xacblock_hashes"...)
	b = wire.AppendArray(b, len(hashes))
	for _, h := range hashes {
		b = wire.AppendUint(b, h)
	}
	return b
}
