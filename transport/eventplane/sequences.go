package eventplane

import (
	"sync/atomic"
	"time"

	"mockbench/engine/spawn"
	"mockbench/transport/wire"
)

// Bounds of active-sequence events: how many may wait, and how many travel together and how long the first of them
// waits for others.
const (
	sequenceQueue = 4096
	sequenceBatch = 256
	sequenceWait  = time.Millisecond
)

// Sequences tells routers which requests have passed their prefill. It is safe for concurrent use.
type Sequences struct {
	worker    uint64
	publisher *Publisher
	batches   bool
	failed    func(error)

	queue  chan sequenceEvent
	stop   chan struct{}
	done   chan struct{}
	full   atomic.Uint64
	closed atomic.Uint64
}

type sequenceEvent struct {
	request string
	rank    int
}

func newSequences(worker uint64, p *Publisher, batches bool, failed func(error)) *Sequences {
	s := &Sequences{worker: worker, publisher: p, batches: batches, failed: failed,
		queue: make(chan sequenceEvent, sequenceQueue), stop: make(chan struct{}), done: make(chan struct{})}
	spawn.Go("active sequences", s.run)
	return s
}

// PrefillCompleted announces that the first tokens of a request left the worker. request is the id of the request
// plane, rank the data-parallel rank the router chose. It never waits: an event that finds no room is counted and lost.
func (s *Sequences) PrefillCompleted(request string, rank int) {
	select {
	case <-s.stop:
		s.closed.Add(1)
		return
	default:
	}
	select {
	case s.queue <- sequenceEvent{request, rank}:
	default:
		s.full.Add(1)
	}
}

// Lost returns how many events found the queue full, and how many came after the worker was closed.
func (s *Sequences) Lost() (full, closed uint64) { return s.full.Load(), s.closed.Load() }

func (s *Sequences) run() {
	defer close(s.done)
	for {
		select {
		case e := <-s.queue:
			s.publish(e)
		case <-s.stop:
			return
		}
	}
}

// publish sends one event, or as a batch with those that follow at once.
func (s *Sequences) publish(first sequenceEvent) {
	n := 1
	body := s.append(nil, first)
	if s.batches {
		timer := time.NewTimer(sequenceWait)
		defer timer.Stop()
	collect:
		for n < sequenceBatch {
			select {
			case e := <-s.queue:
				body = s.append(body, e)
				n++
			case <-timer.C:
				break collect
			case <-s.stop:
				break collect
			}
		}
		body = append(wire.AppendArray([]byte("\x81\xa6events"), n), body...)
	}
	if err := s.publisher.Publish(body); err != nil {
		s.failed(err)
	}
}

func (s *Sequences) close() {
	close(s.stop)
	<-s.done
}

func (s *Sequences) append(b []byte, e sequenceEvent) []byte {
	b = append(b, "\x85\xaarequest_id"...)
	b = wire.AppendString(b, e.request)
	b = append(b, "\xa6worker\x82\xa9worker_id"...)
	b = wire.AppendUint(b, s.worker)
	b = append(b, "\xa7dp_rank"...)
	b = wire.AppendUint(b, uint64(e.rank))
	b = append(b, "\xa4data\xb4MarkPrefillCompleted\xa9router_id"...)
	b = wire.AppendUint(b, s.worker)
	return append(b, "\xa9lora_name\xc0"...)
}
