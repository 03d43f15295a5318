package eventplane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mockbench/kv"
)

// script builds a group: "s 1,2<0" stores blocks 1 and 2 behind block 0, "r 1,2" removes them, "h..." is about the
// host tier.
func script(lines ...string) *kv.Events {
	var g kv.Events
	for _, line := range lines {
		e := kv.Event{Position: -1, Offset: int32(len(g.Sequence))}
		if line[0] == 'h' {
			e.Tier, line = kv.HostPinned, line[1:]
		}
		list, parent, has := strings.Cut(line[2:], "<")
		if e.HasParent = has; has {
			fmt.Sscan(parent, &e.Parent)
		}
		if line[0] == 'r' {
			e.Kind = kv.Removed
		}
		for _, field := range strings.Split(list, ",") {
			first, last := uint64(0), uint64(0)
			if n, _ := fmt.Sscanf(field, "%d-%d", &first, &last); n < 2 {
				last = first
			}
			for hash := first; hash <= last; hash++ {
				g.Sequence = append(g.Sequence, hash)
				g.Local = append(g.Local, hash+1000)
				e.Count++
			}
		}
		g.List = append(g.List, e)
	}
	return &g
}

// recorder is a pipeline whose messages are kept, decoded.
type recorder struct {
	pipeline
	messages [][]RouterEvent
}

func newRecorder(t interface{ Fatalf(string, ...any) }) *recorder {
	r := &recorder{}
	r.source = source{worker: testWorker}
	r.message.publish = func(payload []byte) {
		events, err := ReadKVEvents(payload, testWorker, 0)
		if err != nil {
			t.Fatalf("message cannot be read: %v", err)
		}
		r.messages = append(r.messages, events)
	}
	return r
}

// shape writes messages as "id kind blocks", one string a message.
func (r *recorder) shape() (list []string) {
	for _, m := range r.messages {
		var events []string
		for _, e := range m {
			events = append(events, fmt.Sprintf("%d%c%d", e.Event.ID, "sr"[e.Event.Kind], e.Event.Count))
		}
		list = append(list, strings.Join(events, " "))
	}
	r.messages = nil
	return list
}

func TestPipeline(t *testing.T) {
	for _, c := range []struct {
		name   string
		groups []*kv.Events
		want   []string
	}{
		{"a chain in two events becomes one", []*kv.Events{script("s 1,2", "s 3,4<2")}, []string{"1s4"}},
		{"another parent does not join", []*kv.Events{script("s 1,2", "s 3<1")}, []string{"1s2 2s1"}},
		{"a new root does not join", []*kv.Events{script("s 1", "s 2")}, []string{"1s1 2s1"}},
		{"removals join", []*kv.Events{script("r 1", "r 2,3")}, []string{"1r3"}},
		{"tiers stay apart", []*kv.Events{script("s 1", "hs 2<1", "r 3", "hr 4")}, []string{"1s1 2s1 3r1 4r1"}},
		{"order is kept", []*kv.Events{script("r 9", "s 1", "r 8", "s 2<1")}, []string{"1r1 2s1 3r1 4s1"}},
		{"groups do not join", []*kv.Events{script("s 1"), script("s 2<1")}, []string{"1s1", "2s1"}},
		{"128 blocks close an event", []*kv.Events{script("s 1-100", "s 101-128<100", "s 129<128")}, []string{"1s128 2s1"}},
		{"a large event stays whole and alone", []*kv.Events{script("s 1", "s 2-1501<1", "s 1502<1501")}, []string{"1s1 2s1500 3s1"}},
		{"only the last copy counts", []*kv.Events{script("s 1,2"), script("s 1"), script("r 1,2"), script("r 1")},
			[]string{"1s2", "2s1", "3r1", "4r1"}},
		{"a removal without effect takes no number", []*kv.Events{script("s 1"), script("s 1"), script("r 1"), script("s 2")},
			[]string{"1s1", "2s1", "3s1"}},
		{"unknown removals pass", []*kv.Events{script("r 5")}, []string{"1r1"}},
		{"an empty group says nothing", []*kv.Events{script()}, nil},
		{"8192 blocks a message", []*kv.Events{script("s 1-8000", "s 10001-10192<9", "s 20001<9", "s 30001-39000<9", "s 40001<9")},
			[]string{"1s8000 2s192", "3s1", "4s9000", "5s1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder(t)
			for _, g := range c.groups {
				r.group(g)
			}
			if got := r.shape(); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestMessageLimits(t *testing.T) {
	many := func() *kv.Events {
		var g kv.Events
		for i := range uint64(300) {
			g.List = append(g.List, kv.Event{Offset: int32(i), Count: 1, Position: -1})
			g.Sequence, g.Local = append(g.Sequence, i), append(g.Local, i)
		}
		return &g
	}
	r := newRecorder(t)
	r.group(many())
	if n := []int{len(r.messages[0]), len(r.messages[1]), len(r.messages[2])}; !slices.Equal(n, []int{128, 128, 44}) {
		t.Errorf("events a message: %v", n)
	}
	r = newRecorder(t)
	r.message.limit = 2000
	publish := r.message.publish
	r.message.publish = func(payload []byte) {
		if len(payload) > 2000 {
			t.Errorf("payload of %d bytes", len(payload))
		}
		publish(payload)
	}
	r.group(many())
	if events := slices.Concat(r.messages...); len(events) != 300 || events[299].Event.ID != 300 {
		t.Errorf("%d events", len(events))
	}
}

func TestRing(t *testing.T) {
	k := &kvSink{pipeline: newRecorder(t).pipeline}
	for i := range uint64(3000) {
		if i%3 == 2 {
			k.pipeline.group(script(fmt.Sprintf("r %d", i-1)))
		} else {
			k.pipeline.group(script(fmt.Sprintf("s %d-%d", 10*i, 10*i+i%10)))
		}
	}
	ask := func(start string) (variant string, a goldenAnswer) {
		body := fmt.Sprintf(`{"worker_id":%d,"dp_rank":0,"start_event_id":%s,"end_event_id":null}`, testWorker, start)
		frame, err := newRecovery(k).Handle(context.Background(), []byte(body), true)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Data map[string]json.RawMessage }
		if err := json.Unmarshal(frame, &got); err != nil {
			t.Fatal(err)
		}
		variant = slices.Collect(maps.Keys(got.Data))[0]
		if err := json.Unmarshal(got.Data[variant], &a); err != nil {
			t.Fatal(err)
		}
		return variant, a
	}
	for start, want := range map[uint64]string{1: "TreeDump", 1976: "TreeDump", 1977: "Events", 2999: "Events", 3000: "Events", 3001: "TooNew"} {
		variant, a := ask(fmt.Sprint(start))
		if variant != want {
			t.Errorf("from %d: %s, want %s", start, variant, want)
		}
		if want == "Events" && (len(a.Events) != int(3001-start) || a.Last != 3000) {
			t.Errorf("from %d: %d events, last %d", start, len(a.Events), a.Last)
		}
	}
	_, recent := ask("1977")
	for i, e := range eventsFromJSON(t, recent.Events) {
		n := uint64(1976 + i) // the group that made the event
		want := script(fmt.Sprintf("s %d-%d", 10*n, 10*n+n%10))
		if n%3 == 2 {
			want = script(fmt.Sprintf("r %d", n-1))
		}
		if e.Event.ID != n+1 || !slices.Equal(e.Sequence, want.Sequence) {
			t.Fatalf("event %d: %+v", i, e)
		}
	}
	if words := len(k.pipeline.history.ring.words.items); words > 50_000 {
		t.Errorf("the ring holds %d words for %d events", words, ringEvents)
	}
}

// Whatever a rank does, what routers are told adds up to what it holds, and a dump says the same.
func TestEventsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRecorder(t)
		copies := [2]map[uint64]int{{}, {}} // by tier, the naive way
		router := [2]map[uint64]bool{{}, {}}
		for range rapid.IntRange(1, 30).Draw(t, "groups") {
			var lines []string
			for range rapid.IntRange(0, 5).Draw(t, "events") {
				tier := rapid.IntRange(0, 1).Draw(t, "tier")
				hash := rapid.Uint64Range(0, 30).Draw(t, "hash")
				kind := "s"
				if copies[tier][hash] > 0 && rapid.Bool().Draw(t, "remove") {
					kind = "r"
					copies[tier][hash]--
				} else {
					copies[tier][hash]++
				}
				line := fmt.Sprintf("%s%s %d", []string{"", "h"}[tier], kind, hash)
				if kind == "s" && hash > 0 {
					line += fmt.Sprintf("<%d", hash/2) // a block's parent never changes
				}
				lines = append(lines, line)
			}
			r.group(script(lines...))
		}
		last := uint64(0)
		for _, e := range slices.Concat(r.messages...) {
			if last++; e.Event.ID != last {
				t.Fatalf("event %d follows %d", e.Event.ID, last-1)
			}
			for _, hash := range e.Sequence {
				if router[e.Event.Tier][hash] = e.Event.Kind == kv.Stored; e.Event.Kind == kv.Removed {
					delete(router[e.Event.Tier], hash)
				}
			}
		}
		for tier := range copies {
			maps.DeleteFunc(copies[tier], func(_ uint64, n int) bool { return n == 0 })
			want := slices.Sorted(maps.Keys(copies[tier]))
			if got := slices.Sorted(maps.Keys(router[tier])); !slices.Equal(got, want) {
				t.Fatalf("tier %d: a router holds %v, want %v", tier, got, want)
			}
			checkDump(t, &r.history.tiers[tier], want)
		}
	})
}

// checkDump checks that a dump holds each block once, after its parent if that is resident.
func checkDump(t *rapid.T, x *index, want []uint64) {
	seen := map[uint64]bool{}
	x.dump(kv.Device, func(e kv.Event, sequence, local []uint64) {
		parent := e.Parent
		for i, hash := range sequence {
			_, resident := x.blocks[parent]
			if (e.HasParent || i > 0) && resident && !seen[parent] {
				t.Fatalf("block %d comes before its parent %d", hash, parent)
			}
			if seen[hash] || local[i] != hash+1000 || hash > 0 && parent != hash/2 {
				t.Fatalf("block %d: twice, or parent %d or local hash %d is wrong", hash, parent, local[i])
			}
			seen[hash], parent = true, hash
		}
	})
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Fatalf("a dump holds %v, want %v", got, want)
	}
}

// FuzzReceive gives arbitrary bytes to everything that reads the network.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x91\x84\xa9worker_id\x01\xacstorage_tier\xa6device\xa5event\x83\xa8event_id\x01\xa4data\xa7cleared\xa7dp_rank\x00"))
	f.Add([]byte("\xdd\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = ReadKVEvents(b, 1, 0)
		_, _ = decodeQuery(b, false)
		_, _ = decodeQuery(b, true)
		frames := [][]byte{[]byte(KVEvents), make([]byte, 8), make([]byte, 8), b}
		if e, err := ReadFrames(frames, KVEvents, 0); err == nil && e.Topic != KVEvents {
			t.Fatal("a foreign topic was accepted")
		}
	})
}
