package report

import "mockbench/engine"

// Stage is a pool of workers that a request passes through.
type Stage uint8

// Stages.
const (
	Aggregated Stage = iota
	Prefill
	Decode
)

var stageWords = []string{"agg", "prefill", "decode"}

// Status is how a request of an offline run ended.
type Status uint8

// Statuses.
const (
	Running Status = iota
	Completed
	Rejected
	Cancelled
	Failed
)

var statusWords = []string{"", "completed", "rejected", "canceled", "failed"}

func (s Status) String() string { return statusWords[s] }

// never is the time of what did not happen.
const never engine.Time = -1

// Entry is what is known of one request of an offline run. The driver fills in the first group and reports the rest to an
// Offline. Times that did not come are negative.
type Entry struct {
	Number    int // of the request, from 0
	Session   string
	Turn      int
	InSession bool   // Session and Turn mean something
	RequestID string // of a graph
	Play      string // of a graph
	Arrival   engine.Time
	Input     int // prompt tokens
	Requested int // output tokens asked for

	Dispatched            engine.Time // of a graph
	SourceHeld            engine.Time
	DestinationReserved   engine.Time
	DestinationActivated  engine.Time
	SourceReleased        engine.Time
	Workers               [3]int32 // rank of the fleet, by stage; negative if there was none
	Overlaps              [3]int32 // tokens the router expected to be reused, by stage
	Routes                []Route  // only if records are kept
	status                Status
	tokens                int
	admitted              [3]engine.Time // first, by stage
	admissions            [3]int32
	firstReused           [3]int32
	firstHost             int32
	maxReused             [3]int32
	first, second, latest engine.Time
	ended                 engine.Time
	gaps                  []float64
	history               []admission
}

// Reset prepares an entry, new or used, for a request.
func (e *Entry) Reset() {
	*e = Entry{Dispatched: never, SourceHeld: never, DestinationReserved: never, DestinationActivated: never,
		SourceReleased: never, Workers: [3]int32{-1, -1, -1}, admitted: [3]engine.Time{never, never, never},
		first: never, second: never, latest: never, ended: never,
		gaps: e.gaps[:0], history: e.history[:0], Routes: e.Routes[:0]}
}

// Advance notes n tokens after the first, of which the earliest came at next and the last at latest. Their gaps are for
// Offline.Gaps.
func (e *Entry) Advance(n int, next, latest engine.Time) {
	if n == 0 {
		return
	}
	if e.tokens == 1 {
		e.second = next
	}
	e.tokens += n
	e.latest = latest
}

// Tokens returns the number of output tokens so far.
func (e *Entry) Tokens() int { return e.tokens }

// Latencies returns the time to first token and the mean gap between tokens in milliseconds. They mean something if there
// are tokens, and more than one.
func (e *Entry) Latencies() (ttft, gap float64) {
	if e.tokens > 1 {
		gap = e.tpot()
	}
	return e.ttft(), gap
}

// Status returns how the request ended.
func (e *Entry) Status() Status { return e.status }

// Admitted reports whether an engine took the request out of its queue.
func (e *Entry) Admitted() bool { return e.admissions != [3]int32{} }

// Route is a decision about where a request goes.
type Route struct {
	Stage             Stage
	Queued            bool
	Entered, Released engine.Time // queue, if Queued
	Worker, Rank      int         // data-parallel rank within the worker
	Scheduler         int         // rank of the fleet
	Scored            bool        // by cost: the block figures mean something
	Overlap, Best     int         // blocks
	OverlapTokens     int
}

// admission is an entry of the admission history.
type admission struct {
	stage        Stage
	at           engine.Time
	reused, host int
}

// firstAdmission returns the stage of the first admission: prefill if the request was there, else the only one.
func (e *Entry) firstStage() Stage {
	for _, s := range []Stage{Aggregated, Prefill, Decode} {
		if e.admissions[s] > 0 {
			return s
		}
	}
	return Aggregated
}
