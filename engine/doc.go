// Package engine defines what a simulated LLM engine is: requests go in, forward passes come out.
//
// A [Scheduler] is the deterministic state machine of one rank. It has no clock, no goroutine, no IO and no log: a
// driver decides when a pass starts and when its end has come. Each pass yields one [Pass] record, and everything
// downstream (response streams, KV event publishers, metrics, the report, the screen) is a reader of those records.
// A [Group] is the data-parallel ranks of one worker behind their barrier.
package engine

// Time is simulated time in milliseconds since the start of the engine. It is a double, not an integer number of
// nanoseconds, because the reference adds pass lengths as doubles and its recorded passes are equal to the last bit
// only if ours does too. Drivers convert at the edge.
type Time float64
