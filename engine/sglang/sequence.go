package sglang

import (
	"mockbench/engine"
	"mockbench/kv/radix"
)

// sequence is a request inside a rank, with its lease on the page pool.
type sequence struct {
	req       *engine.Request
	promptLen int
	maxOut    int
	generated []uint32
	hashes    []uint64 // local hash of each complete page, kept across retraction

	pages        []int32     // one per started page
	materialised int         // leading tokens that own a KV slot
	cached       int         // page-aligned leading tokens whose pages belong to the tree
	last         *radix.Node // the node whose path is locked for this request

	place    place
	admitted bool
	first    int // tokens reused at first admission
	since    engine.Time

	handoff     engine.ID
	source      bool   // its KV is held after the last token
	destination bool   // its room was reserved before it could run
	refused     uint64 // destination: generation of the last failed attempt, 0 if none
}

// place says which list of the scheduler holds a sequence.
type place uint8

const (
	nowhere place = iota
	inWaiting
	inReady
	inRunning
	heldSource
	pendingDestination
	heldDestination
)

// expectedOutput bounds the room that a sequence sets aside at once for its output.
const expectedOutput = 4096

func newSequence(r *engine.Request, page, modelLimit int, root *radix.Node, now engine.Time) *sequence {
	q := &sequence{req: r, promptLen: r.PromptLen(), maxOut: r.OutputLimit(), last: root, since: now}
	if modelLimit > 0 {
		q.maxOut = max(0, min(q.maxOut, modelLimit-q.promptLen))
	}
	expected := min(q.maxOut, expectedOutput)
	q.generated = make([]uint32, 0, expected)
	q.hashes = make([]uint64, 0, (q.promptLen+expected)/page)
	q.pages = make([]int32, 0, (q.promptLen+expected)/page+1)
	return q
}

func (q *sequence) length() int    { return q.promptLen + len(q.generated) }
func (q *sequence) remaining() int { return q.maxOut - len(q.generated) }

// fresh reports that the sequence owns no KV: it never ran, or was retracted.
func (q *sequence) fresh() bool { return q.materialised == 0 }

func (q *sequence) token(i int) uint32 {
	if i < q.promptLen {
		return q.req.PromptToken(i)
	}
	return q.generated[i-q.promptLen]
}

// reserve is the output length that admission sets aside.
func (q *sequence) reserve(clip int) int { return min(q.remaining(), clip) }

// queue is a list of waiting sequences that grows at both ends.
type queue struct {
	list  []*sequence
	count tally
}

func (w *queue) len() int        { return len(w.list) }
func (w *queue) head() *sequence { return w.list[0] }

func (w *queue) pushBack(q *sequence) {
	w.list = append(w.list, q)
	w.count.add(q)
}

func (w *queue) pushFront(q *sequence) {
	w.list = append(w.list, nil)
	copy(w.list[1:], w.list)
	w.list[0] = q
	w.count.add(q)
}

func (w *queue) popFront() *sequence {
	q := w.list[0]
	w.list[0] = nil
	w.list = w.list[1:]
	w.count.remove(q)
	return q
}

func (w *queue) remove(q *sequence) {
	w.list = without(w.list, q)
	w.count.remove(q)
}

// without deletes q from an ordered list.
func without(list []*sequence, q *sequence) []*sequence {
	for i, x := range list {
		if x == q {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// tally keeps the sums that forward-pass metrics need of a queue, so that a pass never walks it.
type tally struct {
	prefills, decodes engine.Moments
}

func (t *tally) add(q *sequence) {
	if len(q.generated) == 0 && !q.destination {
		t.prefills.Add(q.promptLen)
	} else {
		t.decodes.Add(q.length())
	}
}

func (t *tally) remove(q *sequence) {
	if len(q.generated) == 0 && !q.destination {
		t.prefills.Remove(q.promptLen)
	} else {
		t.decodes.Remove(q.length())
	}
}
