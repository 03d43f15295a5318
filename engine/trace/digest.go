package trace

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"
)

// Digest identifies a graph and its times: BLAKE3 over its canonical JSON.
func (t *Trace) Digest() string {
	h := blake3.New()
	b := append([]byte(`{"block_size":`), strconv.Itoa(t.BlockSize)...)
	b = append(b, `,"nodes":[`...)
	for i := range t.Graph.Nodes {
		if i > 0 {
			b = append(b, ',')
		}
		b = t.Graph.appendNode(b, i)
		h.Write(b)
		b = b[:0]
	}
	h.Write(append(b, `]}`...))
	return hex.EncodeToString(h.Sum(nil))
}

func (g *Graph) appendNode(b []byte, i int) []byte {
	n := &g.Nodes[i]
	text := func(key, value string) {
		b = append(b, `"`+key+`":`...)
		b = appendJSON(b, value)
		b = append(b, ',')
	}
	raw := func(key, value string) { b = append(b, `"`+key+`":`+value+`,`...) }
	x := n.Extra
	if x == nil {
		x = &Extra{}
	}
	b = append(b, '{')
	text("request_id", n.ID)
	text("play_id", n.Play)
	if n.Ordinal >= 0 {
		raw("source_play_ordinal", strconv.Itoa(n.Ordinal))
	}
	text("session_id", n.Session)
	text("model", n.Model)
	raw("input_length", strconv.Itoa(n.Input))
	raw("max_output_tokens", strconv.Itoa(n.Output))
	if x.Tokens == nil {
		raw("output_token_ids", "null")
	} else {
		b = appendJSON(append(b, `"output_token_ids":`...), x.Tokens)
		b = append(b, ',')
	}
	raw("replay_key", "null")
	b = appendJSON(append(b, `"hash_ids":`...), n.sourceIDs)
	b = append(b, ',')
	raw("not_before_ms", Decimal(n.NotBefore))
	if !math.IsNaN(n.APITime) {
		raw("recorded_api_time_ms", Decimal(n.APITime))
	}
	raw("priority", strconv.Itoa(int(x.Priority)))
	raw("strict_priority", strconv.FormatUint(uint64(x.Strict), 10))
	if x.Class == "" {
		raw("policy_class", "null")
	} else {
		text("policy_class", x.Class)
	}
	b = append(b, `"dependencies":[`...)
	for k, need := range n.Needs {
		if k > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		text("request_id", g.Nodes[need.Node].ID)
		word := "completion"
		if need.Dispatch {
			word = "dispatch"
		}
		text("trigger", word)
		raw("delay_ms", Decimal(need.Delay))
		b = append(b, `"relation":"`+need.Relation.String()+`"}`...)
	}
	return append(b, "]}"...)
}

func appendJSON(b []byte, v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers can always be written
	}
	return append(b, out...)
}

// Decimal writes a number in its shortest form, with a fraction: 1 becomes 1.0.
func Decimal(x float64) string {
	format := byte('f')
	if x != 0 && (math.Abs(x) < 1e-5 || math.Abs(x) >= 1e16) {
		format = 'e'
	}
	s := strconv.FormatFloat(x, format, -1, 64)
	if strings.ContainsAny(s, ".e") {
		return s
	}
	return s + ".0"
}
