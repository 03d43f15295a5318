package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// dynamoSchema is what records of a request trace say.
const dynamoSchema = "dynamo.request.trace.v1"

// dynamoRecord is a record of a request trace, as far as it matters.
type dynamoRecord struct {
	Event   json.RawMessage `json:"event"`
	Schema  string          `json:"schema"`
	Type    string          `json:"event_type"`
	Time    *int64          `json:"event_time_unix_ms"`
	Request *struct {
		ID       string   `json:"request_id"`
		Model    string   `json:"model"`
		Output   *int     `json:"output_tokens"`
		Received *int64   `json:"request_received_ms"`
		Total    *float64 `json:"total_time_ms"`
		Replay   *struct {
			BlockSize    int          `json:"trace_block_size"`
			Input        int          `json:"input_length"`
			Hashes       []uint64     `json:"input_sequence_hashes"`
			Dependencies []dynamoNeed `json:"dependencies"`
		} `json:"replay"`
	} `json:"request"`
	Agent *struct {
		Session string `json:"session_id"`
		Parent  string `json:"parent_session_id"`
	} `json:"agent_context"`
	Tool json.RawMessage `json:"tool"`
}

type dynamoNeed struct {
	ID       string  `json:"request_id"`
	Trigger  string  `json:"trigger"`
	Delay    float64 `json:"delay_ms"`
	Relation string  `json:"relation"`
}

// dynamoRequest is a request of the trace.
type dynamoRequest struct {
	id, model, session, parent string
	agent                      bool
	start, end                 int64 // milliseconds of the Unix epoch
	total                      float64
	input, output              int
	ids                        []uint64
	needs                      []dynamoNeed
	stated                     bool   // needs are stated by the trace
	in                         *lines // where it stands
}

// dynamo reads request traces of a Dynamo frontend.
type dynamo struct {
	blockSize int
	requests  []dynamoRequest
	tools     int
	seen      map[string]bool
}

func readDynamo(paths []string, blockSize int) (*Trace, error) {
	d := &dynamo{blockSize: blockSize, seen: map[string]bool{}}
	for _, path := range paths {
		if err := d.file(path); err != nil {
			return nil, err
		}
	}
	if len(d.requests) == 0 {
		return nil, fmt.Errorf("trace: %s holds no requests", strings.Join(paths, ", "))
	}
	slices.SortStableFunc(d.requests, func(a, b dynamoRequest) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), strings.Compare(a.id, b.id))
	})
	agents := 0
	for i := range d.requests {
		if d.requests[i].agent {
			agents++
		}
	}
	switch agents {
	case 0:
		return d.list()
	case len(d.requests):
		return d.graph()
	}
	return nil, fmt.Errorf("trace: %d of %d requests have an agent_context, which all or none must have", agents, len(d.requests))
}

func (d *dynamo) file(path string) error {
	in, err := openLines(path)
	if err != nil {
		return err
	}
	defer in.close()
	for {
		more, err := in.next()
		if !more || err != nil {
			return err
		}
		r, err := parseDynamo(in.text)
		if err != nil {
			return in.wrong("not a trace record in JSON: %v", err)
		}
		if err := d.record(in, r); err != nil {
			return err
		}
	}
}

func parseDynamo(text []byte) (r dynamoRecord, err error) {
	for range 2 {
		r = dynamoRecord{}
		decoder := json.NewDecoder(bytes.NewReader(text))
		if err := decoder.Decode(&r); err != nil {
			return r, err
		}
		if len(r.Event) == 0 || r.Event[0] != '{' {
			return r, nil
		}
		text = slices.Clone(r.Event)
	}
	return r, nil
}

func (d *dynamo) record(in *lines, r dynamoRecord) error {
	switch r.Type {
	case "request_payload", "tool_start":
		return nil
	case "tool_end", "tool_error":
		if bytes.Contains(r.Tool, []byte(`"claude"`)) {
			return in.wrong("tool events with claude metadata are not supported")
		}
		d.tools++
		return nil
	case "request_end":
	default:
		return in.wrong("event_type %s is unknown", strconv.Quote(r.Type))
	}
	q, t := r.Request, r.Time
	switch {
	case r.Schema != dynamoSchema:
		return in.wrong("schema must be %s, got %s", dynamoSchema, strconv.Quote(r.Schema))
	case q == nil || q.ID == "" || q.Output == nil || *q.Output < 0:
		return in.wrong("request needs a request_id and output_tokens")
	case q.Replay == nil:
		return in.wrong("request %s has no replay part", q.ID)
	case t == nil && q.Received == nil:
		return in.wrong("request %s has neither request_received_ms nor event_time_unix_ms", q.ID)
	case q.Total != nil && !timeInMS(*q.Total):
		return in.wrong("total_time_ms must be finite and not negative, got %s", short(*q.Total))
	case d.seen[q.ID]:
		return in.wrong("request_id %s was used before", q.ID)
	case q.Replay.BlockSize <= 0:
		return in.wrong("trace_block_size must be positive, got %d", q.Replay.BlockSize)
	case d.blockSize != 0 && q.Replay.BlockSize != d.blockSize:
		return in.wrong("trace_block_size %d differs from %d", q.Replay.BlockSize, d.blockSize)
	case q.Replay.Input <= 0 || len(q.Replay.Hashes) < (q.Replay.Input+q.Replay.BlockSize-1)/q.Replay.BlockSize:
		return in.wrong("input_length %d must be positive and covered by its %d input_sequence_hashes", q.Replay.Input, len(q.Replay.Hashes))
	}
	d.seen[q.ID], d.blockSize = true, q.Replay.BlockSize
	x := dynamoRequest{id: q.ID, model: q.Model, total: math.NaN(), input: q.Replay.Input, output: *q.Output, ids: q.Replay.Hashes,
		needs: q.Replay.Dependencies, stated: q.Replay.Dependencies != nil, in: &lines{name: in.name, number: in.number}}
	length := int64(0)
	if q.Total != nil {
		x.total, length = *q.Total, int64(math.Round(*q.Total))
	}
	switch {
	case q.Received != nil && q.Total != nil:
		x.start, x.end = *q.Received, *q.Received+length
	case q.Received != nil:
		x.start, x.end = *q.Received, *q.Received
		if t != nil {
			x.end = *t
		}
	default:
		x.start, x.end = *t-length, *t
	}
	if r.Agent != nil {
		x.agent, x.session, x.parent = true, r.Agent.Session, r.Agent.Parent
	}
	d.requests = append(d.requests, x)
	return nil
}

// list returns requests that do not depend on one another.
func (d *dynamo) list() (*Trace, error) {
	t := &Trace{BlockSize: d.blockSize}
	ids := newInterner()
	for i := range d.requests {
		r := &d.requests[i]
		u := Turn{Input: r.input, Output: r.output, IDs: ids.all(r.ids), Extra: &Extra{RequestID: r.id}}
		t.Sessions = append(t.Sessions, Session{Name: r.id, Arrival: float64(r.start - d.requests[0].start), Turns: []Turn{u}})
	}
	t.IDs = ids.len()
	t.plan()
	return t, t.check()
}

// graph returns requests of agents: those of a session follow one another, those of a child session begin with a request
// of its parent and end before another one.
func (d *dynamo) graph() (*Trace, error) {
	g := draft{blockSize: d.blockSize, source: Source{dynamoSchema, fmt.Sprintf("requests:%d;tools:%d", len(d.requests), d.tools)}}
	sessions := map[string][]int{} // requests of each, by start
	for i := range d.requests {
		r := &d.requests[i]
		sessions[r.session] = append(sessions[r.session], i)
	}
	needs := make([][]draftNeed, len(d.requests))
	for _, session := range sortedKeys(sessions) {
		d.link(sessions[session], sessions, needs)
	}
	for i := range d.requests {
		r := &d.requests[i]
		n := draftNode{Node: Node{ID: r.id, Session: r.session, Model: r.model, NotBefore: float64(r.start - d.requests[0].start),
			APITime: math.NaN(), Ordinal: -1, sourceIDs: r.ids[:(r.input+d.blockSize-1)/d.blockSize],
			Turn: Turn{Input: r.input, Output: r.output, Extra: &Extra{}}}, needs: needs[i]}
		if r.stated {
			var err error
			if n.needs, err = r.statedNeeds(); err != nil {
				return nil, err
			}
		}
		if len(n.needs) > 0 {
			n.NotBefore = 0
		}
		if err := g.checkNode(r.in, &n); err != nil {
			return nil, err
		}
		g.nodes = append(g.nodes, n)
	}
	g.nameComponents("dynamo-play:")
	return g.finish()
}

func sortedKeys(m map[string][]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// link lets the requests of a session follow one another, and ties them to those of its parent.
func (d *dynamo) link(own []int, sessions map[string][]int, needs [][]draftNeed) {
	add := func(i, on int, dispatch bool, relation Relation) {
		from := d.requests[on].end
		if dispatch {
			from = d.requests[on].start
		}
		needs[i] = append(needs[i], draftNeed{d.requests[on].id, Need{Dispatch: dispatch, Delay: float64(d.requests[i].start - from), Relation: relation}})
	}
	for k := 1; k < len(own); k++ {
		add(own[k], own[k-1], false, Sequence)
	}
	first, last := own[0], int64(math.MinInt64)
	lastRequest := first
	for _, i := range own {
		if d.requests[i].end >= last {
			last, lastRequest = d.requests[i].end, i
		}
	}
	parent := sessions[d.requests[first].parent]
	if d.requests[first].parent == "" || len(parent) == 0 {
		return
	}
	spawner, joiner := -1, -1
	for _, i := range parent {
		if d.requests[i].start <= d.requests[first].start && i != first {
			spawner = i
		}
		if joiner < 0 && d.requests[i].start >= last {
			joiner = i
		}
	}
	if spawner >= 0 {
		add(first, spawner, true, Spawn)
	}
	if joiner >= 0 {
		add(joiner, lastRequest, false, Join)
	}
}

// statedNeeds returns the dependencies that the trace states.
func (r *dynamoRequest) statedNeeds() (needs []draftNeed, err error) {
	for _, n := range r.needs {
		relation := slices.Index(relationWords, n.Relation)
		if relation < 0 || n.Trigger != "dispatch" && n.Trigger != "completion" {
			return nil, r.in.wrong("dependency on %s has the unknown trigger %q or relation %q", n.ID, n.Trigger, n.Relation)
		}
		needs = append(needs, draftNeed{n.ID, Need{Dispatch: n.Trigger == "dispatch", Delay: n.Delay, Relation: Relation(relation)}})
	}
	return needs, nil
}

// nameComponents makes a play of all nodes that are connected, named after its earliest node that needs no other.
func (d *draft) nameComponents(prefix string) {
	index, root := map[string]int{}, make([]int, len(d.nodes))
	for i := range d.nodes {
		index[d.nodes[i].ID], root[i] = i, i
	}
	find := func(i int) int {
		for root[i] != i {
			i = root[i]
		}
		return i
	}
	for i := range d.nodes {
		for _, n := range d.nodes[i].needs {
			if k, ok := index[n.id]; ok {
				root[find(i)] = find(k)
			}
		}
	}
	first := map[int]int{}
	for i := range d.nodes {
		r := find(i)
		if k, known := first[r]; !known || len(d.nodes[i].needs) == 0 && (len(d.nodes[k].needs) > 0 ||
			cmp.Or(cmp.Compare(d.nodes[i].NotBefore, d.nodes[k].NotBefore), strings.Compare(d.nodes[i].ID, d.nodes[k].ID)) < 0) {
			first[r] = i
		}
	}
	for i := range d.nodes {
		d.nodes[i].Play = prefix + d.nodes[first[find(i)]].ID
	}
}
