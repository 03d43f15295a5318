package recording

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/router"
	"mockbench/kv"
	"mockbench/ui"
	"mockbench/ui/feed"
)

// source draws moments as a recorder makes them.
type source struct {
	*rapid.T
	now    engine.Time
	blocks map[place]int
}

func (s *source) n() int       { return rapid.IntRange(0, 5000).Draw(s.T, "n") }
func (s *source) flag() bool   { return rapid.Bool().Draw(s.T, "flag") }
func (s *source) f() float64   { return rapid.Float64().Draw(s.T, "float") }
func (s *source) hash() uint64 { return rapid.Uint64().Draw(s.T, "hash") }
func (s *source) text() string { return rapid.String().Draw(s.T, "text") }
func (s *source) label() string {
	return rapid.SampledFrom([]string{"r1", "r2", "r3", "", "né", "a longer name"}).Draw(s.T, "label")
}

func (s *source) time() engine.Time {
	return s.now + engine.Time(rapid.Float64Range(-100, 100).Draw(s.T, "time"))
}

func many[T any](s *source, most int, each func() T) (list []T) {
	for range rapid.IntRange(0, most).Draw(s.T, "length") {
		list = append(list, each())
	}
	return list
}

func (s *source) moment(alone bool) ui.Moment {
	s.now += engine.Time(rapid.Float64Range(0, 200).Draw(s.T, "step"))
	m := ui.Moment{At: s.now, Alone: alone, Speed: s.f(), Paused: s.flag(), Notes: many(s, 2, s.text), Log: many(s, 2, s.text),
		Decisions: many(s, 2, s.decision), Counters: many(s, 2, s.counters)}
	for worker := range rapid.IntRange(0, 2).Draw(s.T, "workers") {
		m.Parts = append(m.Parts, s.part(worker))
	}
	if s.flag() {
		m.Status = &ui.Status{Planes: s.text(), Subscribers: s.n(), Published: s.hash(), Dropped: s.hash(), LastError: s.text()}
	}
	if s.flag() {
		w := s.window()
		m.Window = &w
	}
	if s.flag() {
		m.Sides = &[2]ui.Side{{Policy: router.KV, Window: s.window(), Completed: s.n()}, {Policy: router.Random, Preemptions: s.n()}}
	}
	if s.flag() {
		m.Setup = []byte(`{"HasLoad":true}`)
	}
	return m
}

func (s *source) part(worker int) ui.Part {
	p := ui.Part{Worker: worker, SlipMS: s.f(), HasTree: s.flag(), Batch: s.batch()}
	if s.flag() {
		p.Intro = &ui.Intro{Name: s.text(), Ranks: 2}
	}
	if s.flag() {
		p.Config = []byte(`{}`)
	}
	p.Stalls = many(s, 1, func() live.Stall {
		return live.Stall{Worker: s.text(), Rank: s.n(), Hint: engine.Hint{Kind: engine.HintExhausted, Head: s.request(), Need: s.n()}}
	})
	for rank := range rapid.IntRange(0, 2).Draw(s.T, "ranks") {
		p.Shots = append(p.Shots, s.shot(worker, rank))
	}
	p.Trees = many(s, 1, func() ui.RankTree {
		return ui.RankTree{Rank: 1, Tree: engine.PrefixTree{All: s.n(), Blocks: s.n(),
			Nodes: []engine.TreeNode{{Depth: s.n(), Hash: s.hash()}}}}
	})
	return p
}

func (s *source) batch() (b feed.Batch) {
	b.Events = many(s, 3, func() feed.Event {
		e := feed.Event{Event: kv.Event{ID: s.hash(), Kind: kv.Removed, Tier: kv.HostPinned, Position: int32(s.n()) - 1, Count: int32(s.n())},
			Rank: 1, At: s.time(), First: s.hash()}
		if s.flag() {
			e.HasParent, e.Parent = true, s.hash()
		}
		return e
	})
	b.Marks = many(s, 3, func() feed.Mark {
		return feed.Mark{Label: s.label(), Kind: feed.Chunk, Rank: 1, At: s.time(), Until: s.time(), Tokens: s.n()}
	})
	b.Frames = many(s, 4, func() feed.Frame {
		own := many(s, 4, func() feed.Item {
			return feed.Item{Label: s.label(), Tokens: s.n(), Prompt: s.n(), Done: s.n(), Length: s.n(), Total: s.n(), Fresh: s.flag()}
		})
		f := feed.Frame{Number: s.hash(), Start: s.time(), End: s.time(), RankEnd: s.time(), Budget: math.MaxUint64, Rank: int32(s.n() % 2),
			New: int32(s.n()), Preempted: int32(s.n()), FirstItem: int32(len(b.Items)), Items: int32(len(own))}
		b.Items = append(b.Items, own...)
		return f
	})
	b.Dropped = s.hash()
	b.Totals = feed.Totals{Passes: s.hash(), Budget: s.f(), Time: s.time(), Host: feed.Host{Stores: feed.Lane{Done: 7, Wait: s.f()}}}
	b.Loads = many(s, 2, func() engine.Load { return engine.Load{ActiveBlocks: s.n(), Waiting: s.n(), Preemptions: s.hash()} })
	return b
}

func (s *source) shot(worker, rank int) engine.Snapshot {
	out := engine.Snapshot{Rank: rank, Time: s.time(), BlockSize: s.n(), Queued: s.n(), Ratio: engine.TokenRatio{Now: s.f()},
		Host: engine.HostState{Capacity: s.n(), ComputeNotBefore: s.time()}, Load: engine.Load{Running: s.n()},
		Wait:      engine.Hint{Kind: engine.HintHandoff, Handoffs: s.n(), Head: s.request(), Test: engine.TestPool, Need: s.n()},
		Evictions: many(s, 3, func() int32 { return int32(s.n()) })}
	at := place{worker, rank}
	if _, known := s.blocks[at]; !known || rapid.IntRange(0, 9).Draw(s.T, "resized") == 0 {
		s.blocks[at] = rapid.IntRange(0, 40).Draw(s.T, "blocks")
	}
	for range s.blocks[at] {
		b := engine.BlockState(rapid.IntRange(0, int(engine.BlockHost)).Draw(s.T, "block"))
		out.Blocks = append(out.Blocks, b)
		out.Counts[b]++
	}
	out.Running = many(s, 2, func() engine.RequestState {
		return engine.RequestState{Request: s.request(), Phase: engine.PhaseDecode, Computed: s.n(), Blocks: s.n(), Since: s.time()}
	})
	return out
}

func (s *source) request() *engine.Request {
	return &engine.Request{Label: s.label(), Text: length(s.n()), MaxOutput: s.n(), Arrival: s.time()}
}

func (s *source) window() ui.Window {
	return ui.Window{Seconds: s.f(), TTFT: ui.Figures{Count: s.n(), P50: s.f(), Bins: many(s, 3, s.f)}, Requests: s.n(), Goodput: math.NaN()}
}

func (s *source) counters() router.Counters {
	return router.Counters{Placed: s.hash(), Errors: s.hash(), Active: s.n(), Host: s.n()}
}

func (s *source) decision() router.Decision {
	return router.Decision{Number: s.hash(), Label: s.label(), Policy: router.KV, Worker: s.n(), Choice: 1, Why: s.text(),
		Candidates: []router.Candidate{{Cost: s.f()}, {Worker: s.n(), PrefillBlocks: s.f()}}}
}

var same = cmp.Options{cmpopts.IgnoreFields(engine.Request{}, "ID"), cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmpopts.IgnoreUnexported(feed.Batch{}, router.Candidate{})}

func write(t interface{ Fatal(...any) }, path string, h Header, moments []ui.Moment) []byte {
	w, err := Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range moments {
		if err := w.Add(&moments[i]); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			w.Flush()
		}
	}
	if err := w.Close(End{Dropped: 5}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func collect(r *Recording) (list []ui.Moment, err error) {
	err = r.Each(func(m *ui.Moment) error { list = append(list, *m); return nil })
	return list, err
}

// What comes out is what went in, whatever it was.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.mbrec")
	rapid.Check(t, func(t *rapid.T) {
		s := &source{T: t, blocks: map[place]int{}}
		var in []ui.Moment
		for i := range rapid.IntRange(1, 12).Draw(t, "moments") {
			in = append(in, s.moment(i == 0 || rapid.IntRange(0, 4).Draw(t, "alone") == 0))
		}
		h := Header{Program: "test", Started: time.Unix(1e9, 0).UTC(), Mode: "live", Workers: []string{"w0", "w1"}, Settings: []string{"--x"}}
		data := write(t, path, h, in)
		r, err := Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		out, err := collect(r)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(in, out, same); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(h, r.Header); d != "" || r.Torn != "" || r.End == nil || r.End.Dropped != 5 {
			t.Fatalf("header: %s, torn %q, end %+v", d, r.Torn, r.End)
		}
	})
}

// sample is a small recording.
func sample(t testing.TB) []byte {
	var moments []ui.Moment
	for i := range 40 {
		at := engine.Time(100 * i)
		m := ui.Moment{At: at, Alone: i%10 == 0, Speed: 1}
		p := ui.Part{Worker: i % 2, Shots: []engine.Snapshot{{Blocks: make([]engine.BlockState, 32)}}}
		p.Batch.Frames = []feed.Frame{{Number: uint64(i), Start: at - 50, End: at - 10, RankEnd: at - 10, Budget: 100, Items: 1, Preempted: int32(i / 35)}}
		p.Batch.Items = []feed.Item{{Label: "r1", Tokens: 1, Done: i, Length: i, Total: 100}}
		p.Batch.Loads = []engine.Load{{TotalBlocks: 32}}
		if m.Alone {
			p.Intro = &ui.Intro{Name: "w", Ranks: 1}
			m.Notes = []string{"budget 512"}
		}
		m.Parts = []ui.Part{p}
		moments = append(moments, m)
	}
	h := Header{Program: "test", Mode: "live", Workers: []string{"w0", "w1"}, Routing: true, Window: true}
	return write(t, filepath.Join(t.TempDir(), "s.mbrec"), h, moments)
}

// However much of the end is missing, what remains is read and the loss is told.
func TestTornTail(t *testing.T) {
	data := sample(t)
	whole, err := Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	all, err := collect(whole)
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for n := range len(data) {
		r, err := Read(bytes.NewReader(data), int64(n))
		if err != nil {
			if !errors.Is(err, ErrForeign) && !errors.Is(err, ErrEmpty) {
				t.Fatalf("%d bytes: %v", n, err)
			}
			continue
		}
		if r.Torn == "" {
			t.Fatalf("%d of %d bytes: no word about what is missing", n, len(data))
		}
		part, err := collect(r)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if len(part) < most {
			t.Fatalf("%d bytes give fewer moments than fewer bytes", n)
		}
		if len(part) > most {
			if d := cmp.Diff(all[:len(part)], part, same); d != "" {
				t.Fatalf("%d bytes: %s", n, d)
			}
		}
		most = len(part)
	}
	if most != len(all) {
		t.Errorf("without the end there are %d moments, want %d", most, len(all))
	}
}

// A byte that has changed is noticed.
func TestDamage(t *testing.T) {
	data := sample(t)
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 0x10
		r, err := Read(bytes.NewReader(bad), int64(len(bad)))
		if err == nil && r.Torn == "" && i != len(magic)+2 && i != len(magic)+3 { // two bytes without a meaning
			t.Fatalf("byte %d can be changed without a word", i)
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	data := sample(t)
	newer := bytes.Clone(data)
	newer[len(magic)] = 9
	preamble, err := appendPreamble(nil, Header{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"nothing", nil, ErrForeign, "not a recording"},
		{"foreign", []byte("{\"schema\": 1, \"text\": \"a report or so\"}"), ErrForeign, "not a recording"},
		{"newer", newer, ErrNewer, "format version 9, this program reads up to 1"},
		{"only a header", preamble, ErrEmpty, "before its first block was complete"},
	} {
		if _, err := Read(bytes.NewReader(c.data), int64(len(c.data))); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: %v", err)
	}
}

func TestFind(t *testing.T) {
	data := sample(t)
	r, err := Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		q    ui.Query
		want engine.Time
		ok   bool
	}{
		{ui.Query{From: 500, Worker: 0}, 590, true},
		{ui.Query{From: 590, Worker: 0}, 790, true},
		{ui.Query{From: 990, Worker: 1}, 1090, true}, // in the next segment
		{ui.Query{From: 590, Worker: 0, Back: true}, 390, true},
		{ui.Query{From: 100, Markers: true}, 1000, true},
		{ui.Query{From: 3000, Markers: true}, 3490, true},
		{ui.Query{From: 3890, Markers: true}, 0, false},
		{ui.Query{From: 3900, Markers: true, Back: true}, 3890, true},
		{ui.Query{From: -10, Back: true}, 0, false},
	} {
		if got, ok, err := r.Find(c.q); err != nil || ok != c.ok || math.Abs(float64(got-c.want)) > 1e-9 {
			t.Errorf("%+v: got %v %v %v, want %v %v", c.q, got, ok, err, c.want, c.ok)
		}
	}
}
