package eventplane

import (
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mockbench/engine"
	"mockbench/kv"
)

// BenchmarkBlockChange is a rank under churn: every pass stores the blocks of a long prompt and removes as many, and
// one subscriber takes everything. cpu-ns/block is the CPU time of the whole process, the subscriber's reading
// included.
func BenchmarkBlockChange(b *testing.B) {
	const blocks, pool = 202, 2048
	p := openPlane(b, Options{KVEvents: true})
	conn := dial(b, p.channel(b, KVEvents))
	received := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, conn)
		received <- n
	}()
	p.awaitSubscribers(b, KVEvents, 1)
	pass := &engine.Pass{Effect: true}
	next := uint64(1)
	hash := func(n uint64) uint64 { return n * 0x9e3779b97f4a7c15 }
	passes := 0
	before := cpuTime(b)
	b.ReportAllocs()
	for b.Loop() {
		e := &pass.Events
		e.Reset()
		if next > pool {
			e.List = append(e.List, kv.Event{Kind: kv.Removed, Count: blocks, Position: -1})
			for i := range uint64(blocks) {
				e.Sequence, e.Local = append(e.Sequence, hash(next-pool+i)), append(e.Local, 0)
			}
		}
		e.List = append(e.List, kv.Event{Offset: int32(len(e.Sequence)), Count: blocks, Position: -1})
		for range blocks {
			e.Sequence, e.Local = append(e.Sequence, hash(next)), append(e.Local, hash(next+1))
			next++
		}
		p.feed(pass)
		passes++
	}
	p.Close(10 * time.Second)
	spent := cpuTime(b) - before
	<-received
	if s := p.stats(KVEvents); s.Messages != uint64(passes) || s.Dropped != 0 {
		b.Fatalf("%d messages of %d passes, %d dropped", s.Messages, passes, s.Dropped)
	}
	b.ReportMetric(float64(spent)/float64(passes*2*blocks), "cpu-ns/block")
}

// BenchmarkSmallMessage is a rank that decodes: one block in a message.
func BenchmarkSmallMessage(b *testing.B) {
	p := openPlane(b, Options{KVEvents: true})
	conn := dial(b, p.channel(b, KVEvents))
	go io.Copy(io.Discard, conn)
	p.awaitSubscribers(b, KVEvents, 1)
	pass := stored(0)
	before := cpuTime(b)
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		n++
		pass.Events.List[0].Kind = kv.EventKind(n % 2)
		pass.Events.Sequence[0] = n / 2
		p.feed(pass)
	}
	p.Close(10 * time.Second)
	b.ReportMetric(float64(cpuTime(b)-before)/float64(n), "cpu-ns/block")
}

// BenchmarkForwardPass is the cost of one forward-pass-metrics message without and with a subscriber.
func BenchmarkForwardPass(b *testing.B) {
	for _, subscribed := range []bool{false, true} {
		b.Run(map[bool]string{false: "nobody", true: "subscriber"}[subscribed], func(b *testing.B) {
			p := openPlane(b, Options{})
			if subscribed {
				conn := dial(b, p.channel(b, ForwardPassMetrics))
				go io.Copy(io.Discard, conn)
				p.awaitSubscribers(b, ForwardPassMetrics, 1)
			}
			pass := &engine.Pass{End: 1, Work: make([]engine.Work, 1)}
			before := cpuTime(b)
			n := 0
			for b.Loop() {
				n++
				pass.FPM.DecodeKVTokens = n
				p.feed(pass)
				for n%1000 == 0 && p.stats(ForwardPassMetrics).Messages < uint64(n) {
					time.Sleep(100 * time.Microsecond) // no more than the queue takes
				}
			}
			p.Close(10 * time.Second)
			b.ReportMetric(float64(cpuTime(b)-before)/float64(n), "cpu-ns/pass")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
