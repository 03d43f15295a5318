package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// agenticSchema and agenticVersion are what the header of a trace of dependent requests must say.
const (
	agenticSchema  = "dynamo.agentic_mooncake"
	agenticVersion = 2
)

// draft is a graph that is being put together: needs name nodes by id.
type draft struct {
	file      string // empty if there are several
	nodes     []draftNode
	blockSize int
	source    Source
}

type draftNode struct {
	Node
	line  int // of the file, 0 if there is none
	needs []draftNeed
}

type draftNeed struct {
	id string
	Need
}

func readAgentic(path string) (*Trace, error) {
	in, err := openLines(path)
	if err != nil {
		return nil, err
	}
	defer in.close()
	d := draft{file: path}
	var scan scanner
	ids := map[string]bool{}
	for header := true; ; {
		more, err := in.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		scan.reset(in.text)
		if header {
			if err := d.header(in, &scan); err != nil {
				return nil, err
			}
			header = false
			continue
		}
		n, err := d.node(in, &scan)
		if err != nil {
			return nil, err
		}
		if ids[n.ID] {
			return nil, in.wrong("request_id %s was used before", n.ID)
		}
		ids[n.ID] = true
		d.nodes = append(d.nodes, n)
	}
	if len(d.nodes) == 0 {
		return nil, fmt.Errorf("trace: %s holds no requests", path)
	}
	return d.finish()
}

// header reads the first line.
func (d *draft) header(in *lines, s *scanner) error {
	schema, scope, version, hasSize := "", "", uint64(0), false
	s.object(func(key []byte) {
		switch string(key) {
		case "schema":
			schema = s.string()
		case "version":
			version = s.unsigned(math.MaxUint32)
		case "block_size":
			d.blockSize, hasSize = s.count(), true
		case "hash_id_scope":
			scope = s.string()
		case "source":
			s.object(func(key []byte) {
				switch string(key) {
				case "format":
					d.source.Format = s.string()
				case "digest":
					d.source.Digest = s.string()
				default:
					s.skip()
				}
			})
		default:
			s.skip()
		}
	})
	if err := s.end(); err != nil {
		return in.wrong("not the header of an agentic trace: %v", err)
	}
	switch {
	case schema != agenticSchema || !hasSize:
		return in.wrong("not the header of an agentic trace: schema must be %s, with version and block_size", agenticSchema)
	case version != agenticVersion:
		return in.wrong("version %d of agentic traces is not supported, only %d", version, agenticVersion)
	case d.blockSize == 0:
		return in.wrong("block_size of the trace must be positive")
	case scope != "local":
		return in.wrong("hash_id_scope %s is not supported, only local", strconv.Quote(scope))
	case blank(d.source.Format) || blank(d.source.Digest):
		return in.wrong("source must have a format and a digest")
	}
	return nil
}

// node reads a line after the header.
func (d *draft) node(in *lines, s *scanner) (n draftNode, err error) {
	n.line, n.Ordinal, n.APITime = in.number, -1, math.NaN()
	var x Extra
	seen := map[string]bool{}
	s.object(func(key []byte) {
		seen[string(key)] = true
		if s.null() {
			delete(seen, string(key))
			return
		}
		switch string(key) {
		case "request_id":
			n.ID = s.string()
		case "play_id":
			n.Play = s.string()
		case "session_id":
			n.Session = s.string()
		case "model":
			n.Model = s.string()
		case "input_length":
			n.Input = s.count()
		case "output_length":
			n.Output = s.count()
		case "hash_ids":
			n.sourceIDs = s.ids(nil)
		case "output_token_ids":
			x.Tokens = s.tokens()
		case "not_before_ms":
			n.NotBefore = s.float()
		case "recorded_api_time_ms":
			n.APITime = s.float()
		case "source_play_ordinal":
			n.Ordinal = s.count()
		case "priority":
			x.Priority = s.signed()
		case "strict_priority":
			x.Strict = uint32(s.unsigned(math.MaxUint32))
		case "policy_class":
			x.Class = s.string()
		case "dependencies":
			s.array(func() { n.needs = append(n.needs, readNeed(s)) })
		default:
			s.skip()
		}
	})
	if err := s.end(); err != nil {
		return n, in.wrong("not a request in JSON: %v", err)
	}
	for _, key := range []string{"request_id", "play_id", "session_id", "model", "input_length", "output_length", "hash_ids", "not_before_ms"} {
		if !seen[key] {
			return n, in.wrong("%s is missing", key)
		}
	}
	n.Extra = &x
	return n, d.checkNode(in, &n)
}

func readNeed(s *scanner) (n draftNeed) {
	s.object(func(key []byte) {
		switch string(key) {
		case "request_id":
			n.id = s.string()
		case "trigger":
			switch word := s.string(); word {
			case "dispatch":
				n.Dispatch = true
			case "completion":
			default:
				s.fail("trigger %s is unknown, allowed: dispatch, completion", strconv.Quote(word))
			}
		case "delay_ms":
			n.Delay = s.float()
		case "relation":
			word := s.string()
			i := slices.Index(relationWords, word)
			if i < 0 {
				s.fail("relation %s is unknown, allowed: %s", strconv.Quote(word), strings.Join(relationWords, ", "))
			}
			n.Relation = Relation(max(i, 0))
		default:
			s.skip()
		}
	})
	return n
}

func (d *draft) checkNode(in *lines, n *draftNode) error {
	blocks := (n.Input + d.blockSize - 1) / d.blockSize
	switch {
	case blank(n.ID):
		return in.wrong("request_id must not be blank")
	case blank(n.Model):
		return in.wrong("model must not be blank")
	case n.Input == 0:
		return in.wrong("input_length must be positive")
	case len(n.sourceIDs) != blocks:
		return in.wrong("input_length %d needs %d hash_ids of %d tokens, got %d", n.Input, blocks, d.blockSize, len(n.sourceIDs))
	case n.Extra.Tokens != nil && len(n.Extra.Tokens) != n.Output:
		return in.wrong("output_length %d differs from the %d output_token_ids", n.Output, len(n.Extra.Tokens))
	case !timeInMS(n.NotBefore):
		return in.wrong("not_before_ms must be finite and not negative, got %s", short(n.NotBefore))
	}
	for _, need := range n.needs {
		if need.id == "" {
			return in.wrong("a dependency has no request_id")
		}
		if !timeInMS(need.Delay) {
			return in.wrong("delay_ms must be finite and not negative, got %s", short(need.Delay))
		}
		if need.Dispatch && need.Relation != Spawn {
			return in.wrong("relation %s goes with trigger completion, not with dispatch", need.Relation)
		}
	}
	return nil
}

func timeInMS(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// finish sorts the nodes, checks how they depend on one another and returns them as a trace.
func (d *draft) finish() (*Trace, error) {
	slices.SortFunc(d.nodes, func(a, b draftNode) int { return strings.Compare(a.ID, b.ID) })
	index := make(map[string]int, len(d.nodes))
	for i := range d.nodes {
		index[d.nodes[i].ID] = i
	}
	g := &Graph{Source: d.source}
	for i := range d.nodes {
		if err := d.resolve(&d.nodes[i], index); err != nil {
			return nil, err
		}
		g.Nodes = append(g.Nodes, d.nodes[i].Node)
	}
	for _, check := range []func() error{g.checkCycles, g.makePlays} {
		if err := check(); err != nil {
			return nil, fmt.Errorf("trace: %s%w", d.prefix(), err)
		}
	}
	t := &Trace{BlockSize: d.blockSize, Graph: g}
	ids := newInterner()
	for i := range g.Nodes {
		g.Nodes[i].IDs = ids.all(g.Nodes[i].sourceIDs)
	}
	t.IDs = ids.len()
	t.plan()
	return t, nil
}

// prefix names the file of the draft if there is only one.
func (d *draft) prefix() string {
	if d.file == "" {
		return ""
	}
	return d.file + ": "
}

// wrong returns an error about a node.
func (d *draft) wrong(n *draftNode, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if n.line == 0 {
		return fmt.Errorf("trace: %s", reason)
	}
	return &LineError{File: d.file, Line: n.line, Reason: reason}
}

// resolve turns the names of a node's needs into indices.
func (d *draft) resolve(n *draftNode, index map[string]int) error {
	for _, need := range n.needs {
		i, known := index[need.id]
		switch {
		case need.id == n.ID:
			return d.wrong(n, "request %s depends on itself", n.ID)
		case !known:
			return d.wrong(n, "request %s depends on request %s, which does not exist", n.ID, need.id)
		case d.nodes[i].Play != n.Play:
			return d.wrong(n, "request %s of play %s depends on request %s of play %s", n.ID, n.Play, need.id, d.nodes[i].Play)
		}
		need.Node = i
		n.Needs = append(n.Needs, need.Need)
	}
	slices.SortFunc(n.Needs, func(a, b Need) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(trigger(b), trigger(a)), cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Delay, b.Delay))
	})
	return nil
}

func trigger(n Need) int {
	if n.Dispatch {
		return 1
	}
	return 0
}

// checkCycles finds nodes that wait for one another.
func (g *Graph) checkCycles() error {
	left := make([]int, len(g.Nodes))
	after := make([][]int, len(g.Nodes))
	var free []int
	for i := range g.Nodes {
		left[i] = len(g.Nodes[i].Needs)
		for _, n := range g.Nodes[i].Needs {
			after[n.Node] = append(after[n.Node], i)
		}
		if left[i] == 0 {
			free = append(free, i)
		}
	}
	done := 0
	for ; len(free) > 0; done++ {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, k := range after[i] {
			if left[k]--; left[k] == 0 {
				free = append(free, k)
			}
		}
	}
	if done == len(g.Nodes) {
		return nil
	}
	var blocked []string
	for i := range g.Nodes {
		if left[i] > 0 && len(blocked) < 8 {
			blocked = append(blocked, g.Nodes[i].ID)
		}
	}
	return fmt.Errorf("%d requests wait for one another in a circle: %s", len(g.Nodes)-done, strings.Join(blocked, ", "))
}

// makePlays collects the plays in the order of their ordinals, or of their names.
func (g *Graph) makePlays() error {
	index := map[string]int{}
	ordinals := []int{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		p, known := index[n.Play]
		if !known {
			p = len(g.Plays)
			index[n.Play] = p
			g.Plays = append(g.Plays, Play{ID: n.Play})
			ordinals = append(ordinals, n.Ordinal)
		}
		if ordinals[p] != n.Ordinal {
			return fmt.Errorf("requests of play %s differ in source_play_ordinal", n.Play)
		}
		g.Plays[p].Nodes = append(g.Plays[p].Nodes, i)
	}
	sorted := slices.Sorted(slices.Values(ordinals))
	if sorted[len(sorted)-1] >= 0 {
		for i, o := range sorted {
			if o != i {
				return fmt.Errorf("source_play_ordinal must number all plays from 0, %d is missing", i)
			}
		}
	}
	slices.SortFunc(g.Plays, func(a, b Play) int {
		return cmp.Or(cmp.Compare(g.Nodes[a.Nodes[0]].Ordinal, g.Nodes[b.Nodes[0]].Ordinal), strings.Compare(a.ID, b.ID))
	})
	return nil
}
