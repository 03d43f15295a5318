package engine

// BlockState is the state of one block of a pool as a person sees it.
type BlockState uint8

const (
	BlockFree   BlockState = iota // never used or cleared
	BlockActive                   // referenced by one sequence
	BlockShared                   // referenced by more than one
	BlockCached                   // unreferenced, contents kept
	BlockHost                     // unreferenced, contents kept, with a copy in the host tier
)

// RequestState is one row of a queue.
type RequestState struct {
	Request   *Request
	Phase     Phase
	Computed  int // tokens whose KV exists
	Length    int // known tokens
	Generated int
	Cached    int // reused at first admission
	Blocks    int // owned
	Since     Time
}

// Phase is where a request is in its life.
type Phase uint8

const (
	PhaseWaiting Phase = iota
	PhasePreempted
	PhasePrefill
	PhaseDecode
	PhaseDeferred // waits for a copy of somebody else's
	PhaseLoading  // its blocks are being copied from the host
)

// Snapshot is the state of one rank between two passes, copied out on request. Buffers are reused by Inspect.
type Snapshot struct {
	Rank      int
	Time      Time
	BlockSize int
	Blocks    []BlockState // one a block of the pool, by block number
	Counts    [BlockHost + 1]int
	Evictions []int32 // blocks that lost their contents since the previous snapshot; a bounded, newest-kept list
	Running   []RequestState
	Waiting   []RequestState // the first Rows of the queue
	Queued    int            // length of the whole queue
	Deferred  []RequestState // requests that wait for the host tier, in order
	Wait      Hint           // what held the head of the queue back in the latest pass; no Head if nothing did
	Host      HostState
	Ratio     TokenRatio
	Load      Load
}

// TokenRatio is the share of the remaining output of running requests that an SGLang rank sets aside before it admits
// more; all 0 for other engines. After a retraction Now may lie outside of Min and Init.
type TokenRatio struct{ Now, Min, Init float64 }

// HostState is the state of the host tier of a rank; Capacity is 0 without one.
type HostState struct {
	Capacity, Resident, Pending, Pinned int  // blocks
	Shared                              bool // by several ranks
	ComputeNotBefore                    Time // earliest start of the next forward, because of blocks still being read
}

// SnapshotRows bounds the request rows a snapshot copies of each queue.
const SnapshotRows = 256

// BlockInfo is everything known of one block.
type BlockInfo struct {
	Block      int32
	State      BlockState
	Hash       uint64 // 0 if the block holds no complete content
	Parent     uint64
	HasParent  bool
	Position   int // index in its sequence
	References int
	Requests   []*Request // owners
	Hits       int        // times matched
	Since      Time       // last change of state
}
