package engine

import "mockbench/kv"

// Pass is the record of one forward pass of one rank. Its buffers belong to the scheduler and are valid until the
// rank's next pass is planned: a reader that keeps anything copies it.
//
// All decisions are made at Start; outputs and KV events become visible at End, never before.
type Pass struct {
	Rank         int
	Number       uint64 // passes of this rank so far, from 0
	Start        Time
	ComputeStart Time // later than Start only if host transfers held the forward back
	RankEnd      Time // when this rank's own work was done
	End          Time // end of the group's pass: the latest RankEnd of the group
	Idle         bool // the rank had nothing to do while its siblings ran; also in records of internal events

	Work        []Work       // requests that ran, in scheduling order
	Admissions  []Admission  // in order
	Preemptions []Preemption // in order; retractions of an SGLang rank too
	Outputs     []Output     // in delivery order
	Events      kv.Events    // in publication order
	Handoffs    []Handoff    // disaggregated ranks: transfers that became ready in this pass
	Transfers   []Transfer   // host offload: what happened to copies between device and host, in order

	Prefill ModelCall // Requests is 0 if there was none
	Decode  ModelCall

	Budget     uint64 // token budget of the pass
	BudgetLeft uint64

	Load   Load // after the pass, read at End
	FPM    ForwardPassMetrics
	Drafts Drafts
	Prefix PrefixHit

	// Effect is false for a pass that changed nothing at all: no work, no admission, rejection, output, preemption or
	// event. Together with a zero length it means that the rank is stuck unless something arrives.
	Effect bool
	Hint   Hint
}

// Work is what one request got in a pass.
type Work struct {
	Request *Request
	Tokens  int  // tokens computed
	Prompt  int  // of those, prompt tokens
	Prefix  int  // prompt tokens before this part, cached or computed earlier
	Length  int  // known tokens of the request when it was scheduled
	Waited  bool // taken from the waiting queue in this pass
}

// Admission is a request that left the waiting queue.
type Admission struct {
	Request    *Request
	Reused     int  // prompt and generated tokens found in the cache
	HostReused int  // of those, tokens loaded from the host tier
	First      bool // first admission, not a resumption after preemption
}

// Pressure is the state of a rank around a preemption.
type Pressure struct{ Running, Waiting, ActiveBlocks int }

// Preemption is a request that lost its blocks and went back to the waiting queue.
type Preemption struct {
	Request        *Request
	Blocks         int // blocks it owned
	Before, After  Pressure
	Retraction     bool // SGLang: goes to the back of the queue
	Available      int  // retraction: pages available
	Required       int  // retraction: pages required
	GeneratedSoFar int
	Burst          bool // made room for a burst of draft tokens: what the request computed in this pass stands
}

// Output is one output signal of a request. Token values are the scheduler's own; what a live client is shown may differ.
type Output struct {
	Request   *Request
	Position  int32 // of the token in the output, from 0; -1 for a signal without token
	Token     uint32
	HasToken  bool
	Completed bool
	Rejected  bool  // completed without a token because the request exceeds the engine's limits
	Cached    int32 // first signal only: prompt tokens reused at first admission; -1 if the engine does not say
}

// ModelCall is one question to the timing model, before speed-up.
type ModelCall struct {
	Requests       int
	MeanISL        int // prefill: mean context; decode: mean context
	MeanPrefix     int // prefill: mean tokens before the computed part
	ActiveTokens   int // decode: sum of contexts
	CapacityTokens int // decode: token slots of the pool
	Milliseconds   float64
}

// TransferKind says what happened to a copy of blocks between device and host.
type TransferKind uint8

const (
	StorePrepared TransferKind = iota // room in the host tier is reserved
	StoreStarted                      // the copy to the host begins, or waits for its lane
	StoreDone                         // the blocks can be loaded
	LoadStarted                       // the copy to the device begins, or waits for its lane
	LoadDone                          // the blocks are on the device
	LoadCancelled                     // the request went away
	HostEvicted                       // the host tier forgot a block
	StoreRefused                      // the host tier has no room now, or never (Unfitting)
)

// Transfer is one thing that happened to a copy of blocks between device and host.
type Transfer struct {
	Kind      TransferKind
	ID        int      // counts the copies of a host tier; 0 where there is none
	Request   *Request // whose blocks are copied; of an eviction, for whose
	At        Time
	NotBefore Time     // LoadStarted: earliest start, before latency
	Done      Time     // StoreStarted, LoadStarted: when it will be complete; +Inf if that is not known
	Blocks    []uint64 // sequence hashes
	Unfitting bool
}

// Load is the state of a rank that routers and dashboards look at.
type Load struct {
	ActiveBlocks, InactiveBlocks, TotalBlocks int
	Running, Waiting                          int
	Preemptions                               uint64 // so far
}

// ForwardPassMetrics is the snapshot that planners consume. Variances are population variances. Queue figures are
// taken at the start of the pass, after finished requests were removed.
type ForwardPassMetrics struct {
	PrefillRequests      int
	PrefillTokens        int     // scheduled tokens of those requests
	PrefillLengthVar     float64 // of full prompt lengths
	PrefillKVTokens      int     // tokens before this pass's part
	DecodeRequests       int
	DecodeKVTokens       int
	DecodeKVVar          float64
	QueuedPrefills       int
	QueuedPrefillTokens  int
	QueuedPrefillVar     float64
	QueuedDecodes        int // preempted requests
	QueuedDecodeKVTokens int
	QueuedDecodeKVVar    float64
	Milliseconds         float64 // modelled length of the group's pass
}

// Drafts counts speculative decoding: tokens accepted, base tokens included, and forwards that produced them.
type Drafts struct{ Accepted, Forwards int }

// PrefixHit counts the prompt tokens of an SGLang prefill batch: those found in the cache, and all.
type PrefixHit struct{ Reused, Total int }

// HintKind says what a pass without effect is waiting for.
type HintKind uint8

const (
	HintNone      HintKind = iota
	HintExhausted          // nothing will change until a command arrives
	HintRetry              // internal state moved; another pass may succeed
	HintCountdown          // Rounds passes are left before the rank tries again
	HintTransfer           // nothing will change before a host transfer is complete
	HintHandoff            // nothing will change before one of Handoffs handoffs lets go of its blocks or brings its KV
)

// Test is the admission test that holds the head of the queue back.
type Test uint8

const (
	TestNone   Test = iota
	TestPool        // needs more blocks than the pool can ever give it
	TestBudget      // needs more tokens in one pass than the budget, and may not be chunked
	TestSlots       // no free sequence slot
	TestTotal       // SGLang: prompt and reserved output exceed the available tokens
	TestInput       // SGLang: prefill input budget
	TestChunk       // SGLang: chunk budget
)

// Hint says why a pass had no effect, in the words of the person who must change something.
type Hint struct {
	Kind    HintKind
	Rounds  int
	Head    *Request
	Test    Test
	Need    int // what the head needs, in blocks (TestPool) or tokens
	Have    int // the limit it runs into, same unit
	Setting string
	Raise   int // smallest value of Setting that admits the head and lets it finish

	Handoffs int // that hold blocks of the rank, if it waits for them
}

// Reader takes pass records as they become visible. It is called by the driver of the worker, in order, and must not
// block.
type Reader interface {
	Pass(p *Pass)
}
