package eventplane

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"mockbench/kv"
	"mockbench/transport/wire"
)

// RouterEvent is one KV event as a router receives it.
type RouterEvent struct {
	Worker   uint64
	Rank     int
	Event    kv.Event // Kind may be Cleared; Offset is 0
	Sequence []uint64
	Local    []uint64        // of stored blocks
	Media    [][]MediaObject // of stored blocks; nil if no block has any
}

// Envelope is what travels around every payload.
type Envelope struct {
	Publisher   uint64 `json:"publisher_id"`
	Sequence    uint64 `json:"sequence"`
	PublishedAt uint64 `json:"published_at"` // Unix time in milliseconds
	Topic       Topic  `json:"topic"`
	Payload     []byte `json:"payload"`
}

// ReadFrames reads a message of a publisher as routers do: whatever is not as it must be makes it useless.
func ReadFrames(frames [][]byte, topic Topic, publisher uint64) (Envelope, error) {
	if len(frames) != 4 || len(frames[1]) != 8 || len(frames[2]) != 8 || len(frames[3]) < 5 {
		return Envelope{}, errors.New("event message: frames must be topic, publisher, sequence and envelope")
	}
	head, size := frames[3][:5], binary.BigEndian.Uint32(frames[3][1:])
	if head[0] != frameVersion {
		return Envelope{}, fmt.Errorf("event message: version must be %d, got %d", frameVersion, head[0])
	}
	if uint64(size) > uint64(len(frames[3])-5) {
		return Envelope{}, fmt.Errorf("event message: envelope of %d bytes is cut off", size)
	}
	e, err := ReadEnvelope(frames[3][5 : 5+size])
	switch {
	case err != nil:
		return Envelope{}, err
	case string(frames[0]) != string(topic) || e.Topic != topic:
		return Envelope{}, fmt.Errorf("event message: topic must be %s, got %q and %q", topic, frames[0], e.Topic)
	case binary.BigEndian.Uint64(frames[1]) != publisher || e.Publisher != publisher:
		return Envelope{}, fmt.Errorf("event message: publisher must be %x, got %x and %x", publisher, frames[1], e.Publisher)
	case binary.BigEndian.Uint64(frames[2]) != e.Sequence:
		return Envelope{}, fmt.Errorf("event message: sequence %x in the frame, %x in the envelope", frames[2], e.Sequence)
	}
	return e, nil
}

// ReadEnvelope reads a bare envelope.
func ReadEnvelope(b []byte) (e Envelope, err error) {
	return e, decode(b, &e)
}

// decode reads MessagePack by way of JSON, whose decoder trusts no length and refuses numbers out of range.
func decode(b []byte, v any) error {
	text, err := wire.AppendJSON(nil, b)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// wireEvent is the form of a router event.
type wireEvent struct {
	Worker *uint64         `json:"worker_id"`
	Tier   string          `json:"storage_tier"`
	Domain json.RawMessage `json:"residency_domain"`
	Event  struct {
		ID   *uint64         `json:"event_id"`
		Data json.RawMessage `json:"data"`
		Rank int             `json:"dp_rank"`
	} `json:"event"`
}

// wireData is the form of the data of stored and removed events.
type wireData struct {
	Stored *struct {
		Parent   *uint64     `json:"parent_hash"`
		Position *int32      `json:"start_position"`
		Blocks   []wireBlock `json:"blocks"`
	} `json:"stored"`
	Removed *struct {
		Hashes []uint64 `json:"block_hashes"`
	} `json:"removed"`
}

type wireBlock struct {
	Sequence uint64 `json:"block_hash"`
	Local    uint64 `json:"tokens_hash"`
	Media    *struct {
		Objects []MediaObject `json:"mm_objects"`
	} `json:"mm_extra_info"`
}

// ReadKVEvents reads a kv-events payload about one rank. An event about another worker or rank makes the whole payload
// useless.
func ReadKVEvents(payload []byte, worker uint64, rank int) ([]RouterEvent, error) {
	var list []wireEvent
	if err := decode(payload, &list); err != nil {
		return nil, fmt.Errorf("kv events: %w", err)
	}
	events := make([]RouterEvent, 0, len(list))
	for i := range list {
		e, err := list[i].event()
		if err != nil {
			return nil, fmt.Errorf("kv events: event %d: %w", i, err)
		}
		if e.Worker != worker || e.Rank != rank {
			return nil, fmt.Errorf("kv events: event %d is about worker %d rank %d, must be %d and %d", i, e.Worker, e.Rank, worker, rank)
		}
		events = append(events, e)
	}
	return events, nil
}

func (w *wireEvent) event() (RouterEvent, error) {
	if w.Worker == nil || w.Event.ID == nil || string(w.Domain) == "null" {
		return RouterEvent{}, errors.New("worker_id, event_id and residency_domain must be given")
	}
	e := RouterEvent{Worker: *w.Worker, Rank: w.Event.Rank, Event: kv.Event{ID: *w.Event.ID, Position: -1}}
	tier := -1
	for t, name := range tierNames {
		if name == w.Tier {
			tier = t
		}
	}
	if tier < 0 {
		return e, fmt.Errorf("storage_tier must be one of %q, got %q", tierNames, w.Tier)
	}
	e.Event.Tier = kv.Tier(tier)
	if string(w.Event.Data) == `"cleared"` {
		e.Event.Kind = Cleared
		return e, nil
	}
	var data wireData
	if err := json.Unmarshal(w.Event.Data, &data); err != nil {
		return e, err
	}
	switch {
	case data.Stored != nil:
		e.Event.HasParent = data.Stored.Parent != nil
		if e.Event.HasParent {
			e.Event.Parent = *data.Stored.Parent
		}
		if data.Stored.Position != nil {
			e.Event.Position = *data.Stored.Position
		}
		e.addBlocks(data.Stored.Blocks)
	case data.Removed != nil:
		e.Event.Kind, e.Sequence = kv.Removed, data.Removed.Hashes
	default:
		return e, errors.New("data must be stored, removed or cleared")
	}
	e.Event.Count = int32(len(e.Sequence))
	return e, nil
}

func (e *RouterEvent) addBlocks(blocks []wireBlock) {
	for i, b := range blocks {
		e.Sequence = append(e.Sequence, b.Sequence)
		e.Local = append(e.Local, b.Local)
		if b.Media != nil {
			if e.Media == nil {
				e.Media = make([][]MediaObject, len(blocks))
			}
			e.Media[i] = b.Media.Objects
		}
	}
}
