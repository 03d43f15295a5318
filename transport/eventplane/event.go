package eventplane

import (
	"mockbench/kv"
	"mockbench/transport/wire"
)

// Cleared says that everything a rank held in all tiers is gone. Engines do not produce it; routers accept it.
const Cleared = kv.Removed + 1

// MediaObject is a part of a stored block that stands for an image or another medium. Engines do not produce it.
type MediaObject struct {
	Hash    uint64      `json:"mm_hash"`
	Offsets [][2]uint64 `json:"offsets"`
}

// source says whose events they are.
type source struct {
	worker uint64
	rank   int
}

var tierNames = [...]string{kv.Device: "device", kv.HostPinned: "host_pinned"}

// appendEvent adds one router event. Only stored events have local hashes, and media, which is nil if no block has any.
func (s source) appendEvent(b []byte, e kv.Event, sequence, local []uint64, media [][]MediaObject) []byte {
	b = append(b, "\x84\xa9worker_id"...)
	b = wire.AppendUint(b, s.worker)
	b = append(b, "\xacstorage_tier"...)
	b = wire.AppendString(b, tierNames[e.Tier])
	b = append(b, "\xb0residency_domain\xa6worker\xa5event\x83\xa8event_id"...)
	b = wire.AppendUint(b, e.ID)
	b = append(b, "\xa4data"...)
	switch e.Kind {
	case kv.Stored:
		b = appendStored(append(b, "\x81\xa6stored"...), e, sequence, local, media)
	case kv.Removed:
		b = appendRemoved(append(b, "\x81\xa7removed"...), sequence)
	default:
		b = append(b, "\xa7cleared"...)
	}
	b = append(b, "\xa7dp_rank"...)
	return wire.AppendUint(b, uint64(s.rank))
}

func appendStored(b []byte, e kv.Event, sequence, local []uint64, media [][]MediaObject) []byte {
	b = append(b, "\x83\xabparent_hash"...)
	if e.HasParent {
		b = wire.AppendUint(b, e.Parent)
	} else {
		b = wire.AppendNil(b)
	}
	b = append(b, "\xaestart_position"...)
	if e.Position >= 0 {
		b = wire.AppendUint(b, uint64(e.Position))
	} else {
		b = wire.AppendNil(b)
	}
	b = append(b, "\xa6blocks"...)
	b = wire.AppendArray(b, len(sequence))
	for i, hash := range sequence {
		b = append(b, "\x83\xaablock_hash"...)
		b = wire.AppendUint(b, hash)
		b = append(b, "\xabtokens_hash"...)
		b = wire.AppendUint(b, local[i])
		b = append(b, "\xadmm_extra_info"...)
		if media == nil || media[i] == nil {
			b = wire.AppendNil(b)
		} else {
			b = appendMedia(b, media[i])
		}
	}
	return b
}

func appendRemoved(b []byte, sequence []uint64) []byte {
	b = append(b, "\x81\xacblock_hashes"...)
	b = wire.AppendArray(b, len(sequence))
	for _, hash := range sequence {
		b = wire.AppendUint(b, hash)
	}
	return b
}

func appendMedia(b []byte, objects []MediaObject) []byte {
	b = append(b, "\x81\xaamm_objects"...)
	b = wire.AppendArray(b, len(objects))
	for _, o := range objects {
		b = wire.AppendUint(append(b, "\x82\xa7mm_hash"...), o.Hash)
		b = wire.AppendArray(append(b, "\xa7offsets"...), len(o.Offsets))
		for _, span := range o.Offsets {
			b = wire.AppendUint(wire.AppendUint(append(b, 0x92), span[0]), span[1])
		}
	}
	return b
}
