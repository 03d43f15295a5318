package replay

import (
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/zeebo/blake3"

	"mockbench/engine"
	"mockbench/engine/trace"
)

// lifecycleDomain begins the text over which the digest of a lifecycle is computed.
const lifecycleDomain = "aisimulate-agentic-lifecycle-v1\x00"

// lifecycle is a log of what happens to the nodes of a graph, of which only a digest is kept.
type lifecycle struct {
	hash  *blake3.Hasher
	count int
	line  []byte
}

// add appends an event of a play, and of one of its nodes unless that is negative.
func (l *lifecycle) add(p *plays, now engine.Time, event string, play, node int, status string) {
	if l.hash == nil {
		l.hash = blake3.New()
		l.hash.WriteString(lifecycleDomain)
	}
	b := append(l.line[:0], `{"schema":"aisimulate.agentic.lifecycle.v1","ordinal":`...)
	b = strconv.AppendInt(b, int64(l.count), 10)
	b = append(b, `,"at_ms":`...)
	b = append(b, trace.Decimal(float64(now))...)
	b = append(b, `,"play_id":`...)
	b = appendText(b, p.graph.Plays[play].ID)
	if node >= 0 {
		b = append(b, `,"request_id":`...)
		b = appendText(b, p.graph.Nodes[node].ID)
	}
	b = append(b, `,"event":"`+event+`"`...)
	if status != "" {
		b = append(b, `,"status":"`+status+`"`...)
	}
	b = append(b, "}\n"...)
	l.hash.Write(b)
	l.line = b
	l.count++
}

func appendText(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts can always be written
	}
	return append(b, text...)
}

func (l *lifecycle) digest() string {
	if l.hash == nil {
		l.hash = blake3.New()
		l.hash.WriteString(lifecycleDomain)
	}
	return hex.EncodeToString(l.hash.Sum(nil))
}
