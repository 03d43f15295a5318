package profiles

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mockbench/engine"
)

// Launch is the canonical configuration of one worker: the engine of its ranks and what surrounds it. Pointers are nil
// where the canonical JSON says null.
type Launch struct {
	Engine             engine.Config
	DPSize             uint32 // ranks
	TensorParallelSize uint32
	StartupTime        *float64 // seconds
	BlocksExplicit     bool     // num_gpu_blocks was given
	BandwidthGiven     bool     // kv_transfer_bandwidth was given, if only as 0

	GPUMemoryUtilization   *float64
	MemFractionStatic      *float64
	FreeGPUMemoryFraction  *float64
	CUDAGraphReservedBytes *uint64

	// External is the timing model that lies in files, as it was given; nil if the model is built in.
	External *Object

	// AIS is the timing model of an AIS descriptor, nil for other models.
	AIS *AIS

	Dynamo Dynamo

	// Warnings are settings that were accepted and have no effect, one sentence each.
	Warnings []string
}

// Dynamo is how a worker meets the rest of a deployment.
type Dynamo struct {
	EnableLocalIndexer      bool
	BootstrapPort           *uint32
	HandoffSessionTimeoutMS uint64
	Reasoning               *Reasoning
	ResponseReplayTracePath *string
	ZMQKVEventsPort         *uint32 // of rank 0
	ZMQReplayPort           *uint32 // of rank 0
	RouterQueuePolicy       *string
}

// defaultHandoffMS is how long a prefill worker keeps the blocks of a handoff that nobody takes.
const defaultHandoffMS = 300_000

// Reasoning is the share of an answer that is wrapped as reasoning.
type Reasoning struct {
	StartTokenID, EndTokenID uint32
	Ratio                    float64 // of the output, 0 to 1
}

// Startup returns the time a worker needs before it can serve.
func (l *Launch) Startup() time.Duration {
	if l.StartupTime == nil {
		return 0
	}
	return time.Duration(*l.StartupTime * float64(time.Second))
}

// Resolve reads an engine object, fills in defaults and checks everything. Errors are *engine.SettingError with the full
// dotted name.
func Resolve(o *Object) (*Launch, error) {
	l := &Launch{Engine: engine.DefaultConfig(backendOf(o)), DPSize: 1, TensorParallelSize: 1,
		Dynamo: Dynamo{HandoffSessionTimeoutMS: defaultHandoffMS}}
	_, l.BlocksExplicit = o.Get("engine.num_gpu_blocks")
	bandwidth, _ := o.Get("engine.kv_transfer_bandwidth")
	l.BandwidthGiven = bandwidth != nil
	if d, ok := o.Get("dynamo"); ok {
		if err := dynamoFields(l).read("dynamo", d); err != nil {
			return nil, err
		}
	}
	if err := launchFields(l).read("", o); err != nil {
		return nil, err
	}
	if l.AIS != nil && l.AIS.takesDrafts(o) {
		l.Engine.Nextn = l.AIS.descriptor.Nextn
	}
	if err := l.Engine.Validate(); err != nil {
		return nil, err
	}
	l.nameRates()
	if err := l.check(); err != nil {
		return nil, err
	}
	if l.AIS != nil {
		return l, l.AIS.place(l, o)
	}
	return l, nil
}

// backendOf looks ahead, because defaults depend on the backend.
func backendOf(o *Object) engine.Backend {
	v, _ := o.Get("engine.backend")
	switch b, _ := v.(string); engine.Backend(b) {
	case engine.SGLang:
		return engine.SGLang
	case engine.TRTLLM:
		return engine.TRTLLM
	}
	return engine.VLLM
}

// nameRates writes the acceptance rates in canonical form: one a draft token.
func (l *Launch) nameRates() {
	rates, err := l.Engine.AcceptRates()
	if err != nil || rates == nil {
		return
	}
	words := make([]string, len(rates))
	for i, r := range rates {
		words[i] = strconv.FormatFloat(r, 'f', -1, 64)
	}
	l.Engine.NextnAcceptRates = strings.Join(words, ",")
}

// check checks what stands around the engine.
func (l *Launch) check() error {
	if s := l.StartupTime; s != nil && *s < 0 {
		return outside("startup_time", *s, "must not be negative")
	}
	for _, f := range []struct {
		name  string
		value *float64
	}{
		{"gpu_memory_utilization", l.GPUMemoryUtilization},
		{"mem_fraction_static", l.MemFractionStatic},
		{"free_gpu_memory_fraction", l.FreeGPUMemoryFraction},
	} {
		if f.value != nil && (*f.value < 0 || *f.value > 1) {
			return outside(f.name, *f.value, "must be between 0 and 1")
		}
	}
	if r := l.Dynamo.Reasoning; r != nil && (r.Ratio < 0 || r.Ratio > 1) {
		return outside("dynamo.reasoning.thinking_ratio", r.Ratio, "must be between 0 and 1")
	}
	return nil
}

func outside(setting string, given any, allowed string) error {
	return &engine.SettingError{Setting: setting, Kind: engine.KindRange, Given: fmt.Sprint(given), Allowed: allowed}
}
