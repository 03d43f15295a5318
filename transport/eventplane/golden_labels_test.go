package eventplane

import (
	"encoding/json"
	"fmt"
	"testing"

	"mockbench/kv"
)

// labels gives blocks the names of the recordings.
type labels struct {
	names map[uint64]string
	next  int
}

func newLabels() *labels { return &labels{names: map[uint64]string{}} }

func (l *labels) prompt(i int, tokens []uint32, blockSize int) {
	_, sequence := kv.AppendHashes(nil, nil, tokens, blockSize)
	for b, hash := range sequence {
		if l.names[hash] == "" {
			l.names[hash] = fmt.Sprintf("p%d.%d", i, b)
		}
	}
}

func (l *labels) of(hash uint64) string {
	if l.names[hash] == "" {
		l.names[hash] = fmt.Sprintf("d%d", l.next)
		l.next++
	}
	return l.names[hash]
}

func (l *labels) batch(events []RouterEvent) any {
	list := []any{}
	for _, e := range events {
		var parent, position any
		if e.Event.HasParent {
			parent = l.of(e.Event.Parent)
		}
		if e.Event.Position >= 0 {
			position = e.Event.Position
		}
		blocks := make([]string, len(e.Sequence))
		for i, hash := range e.Sequence {
			blocks[i] = l.of(hash)
		}
		if e.Event.Kind == kv.Stored {
			list = append(list, []any{"stored", tierNames[e.Event.Tier], e.Rank, parent, position, blocks})
		} else {
			list = append(list, []any{"removed", tierNames[e.Event.Tier], e.Rank, blocks})
		}
	}
	return list
}

// roundTrip gives values the types that a JSON decoder gives them.
func roundTrip(t *testing.T, v []any) []any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	list := []any{}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}
