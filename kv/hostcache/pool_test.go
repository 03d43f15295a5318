package hostcache

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mockbench/kv"
)

// naive is the host cache in its simplest form: stamps instead of a list.
type naive struct {
	capacity int
	stamp    int
	entries  map[uint64]*naiveEntry
}

type naiveEntry struct {
	resident    bool
	pins, stamp int
}

func (n *naive) touch(key uint64) {
	if e := n.entries[key]; e != nil && e.resident && e.pins == 0 {
		n.stamp++
		e.stamp = n.stamp
	}
}

// order lists the evictable keys, the next victim first.
func (n *naive) order() []uint64 {
	keys := []uint64{}
	for k, e := range n.entries {
		if e.resident && e.pins == 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(n.entries[a].stamp, n.entries[b].stamp), cmp.Compare(a, b))
	})
	return keys
}

// prepare returns the victims, or false if there is no room.
func (n *naive) prepare(keys, within []uint64) (victims []uint64, ok bool) {
	missing := len(keys) - (n.capacity - len(n.entries))
	for _, k := range n.order() {
		if len(victims) < missing && !slices.Contains(within, k) {
			victims = append(victims, k)
		}
	}
	if len(victims) < missing {
		return nil, false
	}
	for _, k := range victims {
		delete(n.entries, k)
	}
	for _, k := range keys {
		n.entries[k] = &naiveEntry{}
	}
	return victims, true
}

func (n *naive) complete(t *Transfer) {
	n.stamp++
	for _, b := range t.Blocks {
		e := n.entries[b.Key]
		if t.Load {
			n.unpin(e)
			continue
		}
		e.resident, e.stamp = true, n.stamp
	}
}

func (n *naive) unpin(e *naiveEntry) {
	if e.pins--; e.pins == 0 {
		e.stamp = n.stamp
	}
}

// chain describes blocks from..to-1 of a prompt.
func chain(seed, from, to int) (blocks []Block) {
	key := func(i int) uint64 { return uint64(seed*100+i+1) * 0x9E3779B97F4A7C15 }
	for i := from; i < to; i++ {
		b := Block{Key: key(i), Local: uint64(i), Position: i}
		if i > 0 {
			b.HasParent, b.Parent = true, key(i-1)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func keys(blocks []Block) (list []uint64) {
	for _, b := range blocks {
		list = append(list, b.Key)
	}
	return list
}

func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Layout{Capacity: rapid.IntRange(1, 12).Draw(t, "capacity"), BlockBytes: 1e6, BlockSize: 4}
		p := NewPrivate(l)
		if rapid.Bool().Draw(t, "shared") {
			p = NewShared(l)
		}
		port, err := p.Join(l, Link{D2H: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "store speed"), H2D: 1, Latency: 0.25, Emits: true})
		if err != nil {
			t.Fatal(err)
		}
		n := &naive{capacity: l.Capacity, entries: map[uint64]*naiveEntry{}}
		index := map[uint64]bool{}
		now := 0.0
		var loads []*Transfer
		for range 40 {
			seed, from := rapid.IntRange(0, 3).Draw(t, "prompt"), rapid.IntRange(0, 3).Draw(t, "first block")
			blocks := chain(seed, from, from+rapid.IntRange(1, 5).Draw(t, "blocks"))
			switch rapid.IntRange(0, 4).Draw(t, "action") {
			case 0:
				within := keys(blocks)
				absent := slices.DeleteFunc(blocks, func(b Block) bool { return p.State(b.Key) != Absent })
				if len(absent) == 0 {
					continue
				}
				x := port.Prepare(absent, within, nil, now)
				if _, ok := n.prepare(keys(absent), within); ok != (x != nil) {
					t.Fatalf("room %v, want %v", x != nil, ok)
				}
				if x != nil {
					port.Store(x, now)
				}
			case 1:
				if slices.ContainsFunc(blocks, func(b Block) bool { return p.State(b.Key) != Resident }) {
					continue
				}
				loads = append(loads, port.Load(blocks, nil, now, now))
				for _, b := range blocks {
					n.entries[b.Key].pins++
				}
			case 2:
				loads = slices.DeleteFunc(loads, func(x *Transfer) bool { return x.Finished })
				if len(loads) == 0 {
					continue
				}
				port.Cancel(loads[0], now)
				n.stamp++
				for _, b := range loads[0].Blocks {
					n.unpin(n.entries[b.Key])
				}
				loads = loads[1:]
			case 3:
				for _, b := range slices.Backward(blocks) {
					p.Touch(b.Key)
					n.touch(b.Key)
				}
			default:
				now += rapid.Float64Range(0, 4).Draw(t, "time")
				p.Advance(now)
				for _, x := range port.TakeDone() {
					n.complete(x)
				}
			}
			if err := consistent(p, n); err != nil {
				t.Fatal(err)
			}
			follow(t, port, index, n)
		}
	})
}

func consistent(p *Pool, n *naive) error {
	order := []uint64{}
	for i := p.head; i != none; i = p.entries[i].next {
		order = append(order, p.entries[i].block.Key)
	}
	if want := n.order(); !slices.Equal(order, want) {
		return fmt.Errorf("eviction order %x, want %x", order, want)
	}
	want := Usage{Capacity: n.capacity}
	for k, e := range n.entries {
		state := Pending
		if e.resident {
			state = Resident
			want.Resident++
		} else {
			want.Pending++
		}
		if e.pins > 0 {
			want.Pinned++
		}
		i, _ := p.index.Get(k)
		if got := p.State(k); got != state || int(p.entries[i].pins) != e.pins {
			return fmt.Errorf("block %x: state %v, %d pins, want %v, %d", k, got, p.entries[i].pins, state, e.pins)
		}
	}
	if got := p.Usage(); got != want || got.Resident+got.Pending > got.Capacity {
		return fmt.Errorf("usage %+v, want %+v", got, want)
	}
	return nil
}

// follow checks that the announced changes add up to the residency.
func follow(t *rapid.T, port *Port, index map[uint64]bool, n *naive) {
	for _, e := range port.Events.List {
		blocks, _ := port.Events.Blocks(e)
		for i, h := range blocks {
			if index[h] == (e.Kind == kv.Stored) {
				t.Fatalf("event %+v repeats block %d", e, i)
			}
			if e.Kind == kv.Stored {
				index[h] = true
			} else {
				delete(index, h)
			}
		}
	}
	port.Events.Reset()
	resident := 0
	for k, e := range n.entries {
		if e.resident {
			resident++
			if !index[k] {
				t.Fatalf("block %x was not announced", k)
			}
		}
	}
	if len(index) != resident {
		t.Fatalf("%d blocks announced, %d resident", len(index), resident)
	}
}

// shared returns a pool for ranks with links of the given speed in both directions, and its ports.
func shared(t *testing.T, limit float64, links ...float64) (*Pool, []*Port) {
	t.Helper()
	l := Layout{ID: "x", Capacity: 100, BlockBytes: 1e6, D2H: limit, H2D: limit}
	p := NewShared(l)
	var ports []*Port
	for _, link := range links {
		port, err := p.Join(l, Link{D2H: link, H2D: link, Emits: true})
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return p, ports
}

func store(port *Port, seed, blocks int, now float64) *Transfer {
	b := chain(seed, 0, blocks)
	x := port.Prepare(b, keys(b), nil, now)
	port.Store(x, now)
	return x
}

func TestSharedBandwidth(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  float64
		links  []float64
		ranks  []int // of each store
		blocks []int
		want   []float64
	}{
		{"alone", 0, []float64{1}, []int{0}, []int{4}, []float64{4}},
		{"a rank's stores share its link", 0, []float64{1}, []int{0, 0}, []int{1, 3}, []float64{2, 4}},
		{"the limit is shared by all", 1, []float64{1, 1}, []int{0, 1}, []int{2, 2}, []float64{4, 4}},
		{"what a slow link leaves is not given away", 1, []float64{0.25, 1}, []int{0, 1}, []int{1, 1}, []float64{4, 2}},
		{"unlimited", 0, []float64{0}, []int{0}, []int{4}, []float64{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, ports := shared(t, c.limit, c.links...)
			var list []*Transfer
			for i, rank := range c.ranks {
				list = append(list, store(ports[rank], i, c.blocks[i], 0))
			}
			p.Advance(100)
			for i, x := range list {
				if math.Abs(x.Done-c.want[i]) > 1e-9 || !x.Finished {
					t.Errorf("store %d is complete at %v, want %v", i, x.Done, c.want[i])
				}
			}
		})
	}
}

func TestWithdrawnLoadLeavesItsShare(t *testing.T) {
	p, ports := shared(t, 0, 1)
	store(ports[0], 0, 4, 0)
	p.Advance(4)
	a, b := ports[0].Load(chain(0, 0, 4), nil, 4, 4), ports[0].Load(chain(0, 0, 4), nil, 4, 4)
	p.Advance(6) // each has moved one block
	ports[0].Cancel(a, 6)
	p.Advance(20)
	if b.Done != 9 || a.Finished {
		t.Errorf("the other load is complete at %v, want 9; the withdrawn one: %v", b.Done, a.Finished)
	}
}

func TestRanksOfASharedPoolAgree(t *testing.T) {
	p, _ := shared(t, 1, 1)
	l := p.Layout()
	l.BlockBytes++
	if _, err := p.Join(l, Link{}); err == nil {
		t.Error("a rank with other blocks has joined")
	}
}

func TestLateRankAnnouncesWhatIsThere(t *testing.T) {
	p, ports := shared(t, 0, 1)
	store(ports[0], 0, 3, 0)
	p.Advance(10)
	late, err := p.Join(p.Layout(), Link{Emits: true})
	if err != nil {
		t.Fatal(err)
	}
	if e := late.Events; len(e.List) != 1 || e.List[0].Count != 3 || e.List[0].Position != 0 || e.List[0].Tier != kv.HostPinned {
		t.Errorf("events %+v", e)
	}
	if at, ok := late.Deadline(); !ok || at != 10 {
		t.Errorf("next deadline %v, %v", at, ok)
	}
}

func TestLanesAreFirstInFirstOut(t *testing.T) {
	l := Layout{Capacity: 20, BlockBytes: 1e6}
	p := NewPrivate(l)
	port, err := p.Join(l, Link{D2H: 1, H2D: 0.5, Latency: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	a, b := store(port, 0, 2, 1), store(port, 1, 2, 1)
	if a.Done != 3.5 || b.Done != 5.5 {
		t.Errorf("stores are complete at %v and %v, want 3.5 and 5.5", a.Done, b.Done)
	}
	p.Advance(3.5)
	x, y := port.Load(a.Blocks, nil, 3.5, 3.5), port.Load(a.Blocks, nil, 3.5, 3.5)
	if x.Done != 8 || y.Done != 12 {
		t.Errorf("loads are complete at %v and %v, want 8 and 12", x.Done, y.Done)
	}
	port.Cancel(x, 4)
	p.Advance(20)
	if at, ok := port.Deadline(); !y.Finished || x.Finished || !ok || at != 20 {
		t.Errorf("after all: %v, %v, deadline %v", x.Finished, y.Finished, at)
	}
	if !port.See() || port.See() || port.Busy() {
		t.Error("completions are seen once, and nothing is left")
	}
}
