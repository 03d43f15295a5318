package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"mockbench/engine"
)

// Load is a stream of requests. It is safe for concurrent use.
type Load struct {
	mu            sync.Mutex
	o             Options
	changed       chan struct{} // closed and replaced when the load must be looked at again
	stopped       bool
	arrivals      *rand.Rand
	conversations uint64
	ready         []*Request // follow-ups in the order of their Due
	counts        Counts
	produced      int // requests handed out or dropped, for Options.Requests
}

// Request is one turn of a conversation.
type Request struct {
	Label     string // "c12.3": third turn of conversation 12
	Turn      int    // from 1
	Prompt    []uint32
	MaxOutput int
	Due       engine.Time // follow-up: when the user has read the answer

	conversation uint64
	turns        int // of the conversation
	random       *rand.Rand
	output       []uint32 // tokens of the answer; nil: the worker's own
}

// Streams of random numbers that must not depend on one another.
const (
	arrivalStream = iota
	conversationStream
	prefixStream
	answerStream
)

// New returns a load. The error is a *engine.SettingError.
func New(o Options) (*Load, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Load{o: o.withDefaults(), changed: make(chan struct{}),
		arrivals: rand.New(rand.NewPCG(o.Seed, arrivalStream))}, nil
}

// Options returns the present options.
func (l *Load) Options() Options {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.o
}

// Set changes the options of the requests to come; Seed and Requests stay. The error is a *engine.SettingError.
func (l *Load) Set(o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o.Seed, o.Requests = l.o.Seed, l.o.Requests
	l.o = o.withDefaults()
	l.signal()
	return nil
}

// Counts returns what became of the requests so far.
func (l *Load) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// signal makes the runner look again.
func (l *Load) signal() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Gap returns the simulated milliseconds until the next arrival of an open loop.
func (l *Load) Gap() engine.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return engine.Time(l.arrivals.ExpFloat64() / l.o.Rate * 1000)
}

// Next returns the request that arrives now: the follow-up that is due for the longest time, else the first turn of a
// new conversation.
func (l *Load) Next(now engine.Time) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.produced++
	if len(l.ready) > 0 && l.ready[0].Due <= now {
		q := l.ready[0]
		l.ready = slices.Delete(l.ready, 0, 1)
		return q
	}
	return l.open()
}

// session reports whether a load of sessions has a request to submit: a follow-up that is due, or a new conversation
// for one that has ended. If not, due is when the next follow-up will be.
func (l *Load) session(now engine.Time) (submit bool, due engine.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	due = engine.Time(math.Inf(1))
	if len(l.ready) > 0 {
		due = l.ready[0].Due
	}
	return due <= now || l.counts.InFlight+len(l.ready) < l.o.Sessions, due
}

// open begins a conversation. What it says depends on the seed, its number and the options at this moment.
func (l *Load) open() *Request {
	l.conversations++
	n := l.conversations
	random := rand.New(rand.NewPCG(l.o.Seed^n*0x9e3779b97f4a7c15, conversationStream))
	q := &Request{Label: label(n, 1), Turn: 1, conversation: n, random: random, turns: 1 + random.IntN(l.o.Turns)}
	if l.o.PrefixCount > 0 && random.Float64() < l.o.PrefixShare {
		q.Prompt = l.prefix(random.IntN(l.o.PrefixCount))
	}
	l.say(q)
	return q
}

// say adds what the user says in a turn and asks for the length of the answer.
func (l *Load) say(q *Request) {
	q.Prompt = appendTokens(q.Prompt, length(q.random, l.o.PromptMean, l.o.PromptSpread), q.random)
	q.MaxOutput = length(q.random, l.o.OutputMean, l.o.OutputSpread)
}

// answer draws the tokens of an answer, the same ones for the same turn.
func (l *Load) answer(q *Request) []uint32 {
	random := rand.New(rand.NewPCG(l.Options().Seed^q.conversation*0x9e3779b97f4a7c15+uint64(q.Turn), answerStream))
	return appendTokens(nil, q.MaxOutput, random)
}

// prefix returns a shared prefix, each time the same tokens.
func (l *Load) prefix(i int) []uint32 {
	random := rand.New(rand.NewPCG(l.o.Seed^uint64(i)<<32, prefixStream))
	return appendTokens(make([]uint32, 0, l.o.PrefixLength+2*l.o.PromptMean), l.o.PrefixLength, random)
}

// Follow takes the answer to a request that finished now. If the conversation goes on, its next turn, which repeats
// everything said so far, will be returned by Next once it is due.
func (l *Load) Follow(q *Request, answer []uint32, now engine.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(q, answer, now)
}

func (l *Load) follow(q *Request, answer []uint32, now engine.Time) {
	if q.Turn >= q.turns || l.stopped {
		return
	}
	next := &Request{Label: label(q.conversation, q.Turn+1), Turn: q.Turn + 1, conversation: q.conversation,
		turns: q.turns, random: q.random, Due: now + engine.Time(q.random.ExpFloat64()*l.o.ThinkTime)}
	next.Prompt = append(slices.Clone(q.Prompt), answer...)
	l.say(next)
	if len(next.Prompt) > l.o.MaxPrompt {
		return
	}
	at, _ := slices.BinarySearchFunc(l.ready, next.Due, func(r *Request, due engine.Time) int {
		if r.Due <= due {
			return -1
		}
		return 1
	})
	l.ready = slices.Insert(l.ready, at, next)
	l.signal()
}

func label(conversation uint64, turn int) string { return fmt.Sprintf("c%d.%d", conversation, turn) }

// length draws from a normal distribution that is cut off at 1 and at four deviations.
func length(random *rand.Rand, mean, spread int) int {
	z := max(-4, min(4, random.NormFloat64()))
	return max(1, int(math.Round(float64(mean)+z*float64(spread))))
}

func appendTokens(dst []uint32, n int, random *rand.Rand) []uint32 {
	for range n {
		dst = append(dst, FirstToken+random.Uint32N(LastToken-FirstToken+1))
	}
	return dst
}
