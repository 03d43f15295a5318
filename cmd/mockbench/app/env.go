package app

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"mockbench/transport/requestplane"
)

func codecFromEnv(p *program) (requestplane.Codec, error) {
	text := os.Getenv("DYN_REQUEST_PLANE_CODEC")
	if text == "" {
		return requestplane.MsgPack, nil
	}
	codec, err := requestplane.ParseCodec(text)
	if err != nil {
		p.logger("config").Warn("DYN_REQUEST_PLANE_CODEC is not known, msgpack is used", "given", text)
		return requestplane.MsgPack, nil
	}
	return codec, nil
}

// intFromEnv reads a whole number; unset and empty are 0.
func intFromEnv(name string, low, high int) (int, error) {
	text := os.Getenv(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%s: got %q, must be a whole number between %d and %d", name, text, low, high)
	}
	return n, nil
}

func graceFromEnv() (time.Duration, error) {
	const name = "DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS"
	if os.Getenv(name) == "" {
		return shutdownGrace, nil
	}
	n, err := intFromEnv(name, 0, 1<<30)
	return time.Duration(n) * time.Second, err
}
