package eventplane

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mockbench/engine"
)

// Options configure the event plane of one worker.
type Options struct {
	Opener   Opener   // ZMQ or NATS
	Endpoint Endpoint // the serving endpoint
	Worker   uint64   // instance id of the worker

	FirstRank int // data-parallel rank of the worker's first rank
	Ranks     int

	KVEvents  bool // publish KV events: prefix caching is on and the worker is not a decode worker
	Sequences bool // publish active-sequence events: the worker is not a prefill worker

	// Wires lists, rank by rank, other wires that get the groups of KV events before the event plane does. With any
	// wire, host events stay off the event plane. Empty = none.
	Wires [][]GroupSink

	PublisherID func() uint64 // nil = NewPublisherID
	Log         *slog.Logger  // nil = no log
}

// Plane is the event plane of one worker.
type Plane struct {
	log        *slog.Logger
	publishers []*Publisher
	kv         []*kvSink
	load       *loadSink
	forward    *forwardSink
	sequences  *Sequences
	sources    []Source
	readers    []engine.Reader

	lost    atomic.Uint64
	warned  sync.Once
	closing sync.Once
}

// Source is what discovery announces of one rank's KV events, next to the channel of the same publisher: who they are
// about and where missed ones can be asked for.
type Source struct {
	Publisher uint64
	Rank      int // data-parallel rank
	Recovery  *Recovery
}

// Open opens the publishers of a worker. With an error, the plane is usable all the same: topics whose publisher could
// not be opened are missing. A worker without events still serves.
func Open(o Options) (*Plane, error) {
	if o.PublisherID == nil {
		o.PublisherID = NewPublisherID
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Plane{log: o.Log}
	var errs []error
	open := func(topic Topic) *Publisher {
		publisher, err := o.Opener.Open(topic, o.PublisherID(), o.Endpoint)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", topic, err))
			return nil
		}
		p.publishers = append(p.publishers, publisher)
		return publisher
	}
	if o.KVEvents {
		for rank := range o.Ranks {
			p.addKV(o, rank, open(KVEvents))
		}
	}
	if publisher := open(KVMetrics); publisher != nil {
		p.load = newLoadSink(o.Worker, o.FirstRank, o.Ranks, publisher, p.failed)
		p.readers = append(p.readers, p.load)
	}
	if publisher := open(ForwardPassMetrics); publisher != nil {
		p.forward = newForwardSink(o.Worker, o.FirstRank, o.Ranks, publisher, p.failed)
		p.readers = append(p.readers, p.forward)
	}
	if o.Sequences {
		if publisher := open(ActiveSequences); publisher != nil {
			p.sequences = newSequences(o.Worker, publisher, o.Opener.BatchesSequences(), p.failed)
		}
	}
	return p, errors.Join(errs...)
}

// addKV adds the KV events of one rank. Without publisher they go to the other wires only.
func (p *Plane) addKV(o Options, rank int, publisher *Publisher) {
	var wires []GroupSink
	if rank < len(o.Wires) {
		wires = o.Wires[rank]
	}
	if publisher == nil && len(wires) == 0 {
		return
	}
	s := source{worker: o.Worker, rank: o.FirstRank + rank}
	k := newKVSink(rank, s, publisher, wires, len(wires) > 0, p.failed)
	p.kv = append(p.kv, k)
	p.readers = append(p.readers, k)
	if publisher != nil {
		p.sources = append(p.sources, Source{Publisher: publisher.ID(), Rank: s.rank, Recovery: newRecovery(k)})
	}
}

// Readers returns what the worker's driver has to feed, in the order in which the events of a pass must leave.
func (p *Plane) Readers() []engine.Reader { return p.readers }

// Channels returns what discovery has to announce of every publisher.
func (p *Plane) Channels() []Channel {
	channels := make([]Channel, len(p.publishers))
	for i, publisher := range p.publishers {
		channels[i] = publisher.Channel()
	}
	return channels
}

// Sources returns what discovery has to announce of the ranks' KV events.
func (p *Plane) Sources() []Source { return p.sources }

// Sequences returns the publisher of active-sequence events, nil if there is none.
func (p *Plane) Sequences() *Sequences { return p.sequences }

// Stats returns the counters of every publisher, and how many messages were lost before they reached one.
func (p *Plane) Stats() (topics []TopicStats, lost uint64) {
	for _, publisher := range p.publishers {
		topics = append(topics, publisher.Stats())
	}
	lost = p.lost.Load()
	if p.forward != nil {
		lost += p.forward.dropped()
	}
	return topics, lost
}

// failed counts a message that a publisher refused. Routers see a gap and ask for what is missing.
func (p *Plane) failed(err error) {
	p.lost.Add(1)
	p.warned.Do(func() { p.log.Warn("an event could not be published; later failures are only counted", "error", err) })
}

// Close publishes what the readers have taken in, gives subscribers the linger time to take it, and disconnects them.
// The driver must have stopped, and the channels have left discovery, before.
func (p *Plane) Close(linger time.Duration) {
	p.closing.Do(func() {
		for _, k := range p.kv {
			k.close()
		}
		if p.load != nil {
			p.load.close()
		}
		if p.forward != nil {
			p.forward.close()
		}
		if p.sequences != nil {
			p.sequences.close()
		}
		for deadline, i := time.Now().Add(linger), 0; i < len(p.publishers); i++ {
			p.publishers[i].Close(max(0, time.Until(deadline)))
		}
	})
}
