package requestplane

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Environment is what the environment says about the request plane of a worker.
type Environment struct {
	Options    Options
	Codec      Codec         // to advertise
	DrainLimit time.Duration // how long requests in flight may go on at a shutdown
	Warnings   []string      // values that cannot be read, whose defaults are used
}

// defaultDrain is the reference's limit of a graceful shutdown.
const defaultDrain = 900 * time.Second

// defaultQueue is the number of waiting requests if only the running ones are limited.
const defaultQueue = 16

// FromEnvironment reads the variables of the reference. Empty variables count as unset.
func FromEnvironment(getenv func(string) string) Environment {
	var e Environment
	number := func(name string, unset, limit int) int {
		text := strings.TrimSpace(getenv(name))
		if text == "" {
			return unset
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > limit {
			e.Warnings = append(e.Warnings, fmt.Sprintf("%s: got %q, must be a number from 0 to %d", name, text, limit))
			return unset
		}
		return n
	}
	const huge = 1 << 30
	e.Options.Host = getenv("DYN_TCP_RPC_HOST")
	e.Options.Port = number("DYN_TCP_RPC_PORT", 0, 65535)
	e.Options.MaxMessage = number("DYN_TCP_MAX_MESSAGE_SIZE", DefaultMaxMessage, huge)
	e.Options.QUICBatch = time.Duration(number("DYN_QUIC_RESPONSE_BATCH_INTERVAL_US", 0, 100_000)) * time.Microsecond
	limits := DefaultLimits()
	e.Options.Limits = Limits{Running: max(1, number("DYN_TCP_WORKER_POOL_SIZE", limits.Running, huge)),
		Waiting: number("DYN_TCP_WORK_QUEUE_SIZE", limits.Waiting, huge)}
	const unlimited = -1
	if n := number("DYN_ENGINE_REQUEST_LIMIT", unlimited, huge); n != unlimited {
		e.Options.Limits = EngineLimits(n, number("DYN_DYNAMO_REQUEST_QUEUE_LIMIT", defaultQueue, huge))
	}
	e.DrainLimit = time.Duration(number("DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS", int(defaultDrain/time.Second), huge)) * time.Second
	if name := getenv("DYN_REQUEST_PLANE_CODEC"); name != "" {
		codec, err := ParseCodec(name)
		if err != nil {
			e.Warnings = append(e.Warnings, "DYN_REQUEST_PLANE_CODEC: "+err.Error())
		}
		e.Codec = codec
	}
	return e
}
