package requestplane

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFromEnvironment(t *testing.T) {
	read := func(set map[string]string) Environment {
		return FromEnvironment(func(name string) string { return set[name] })
	}
	if d := cmp.Diff(Environment{Options: Options{MaxMessage: 32 << 20, Limits: Limits{10_000, 40_000}}, DrainLimit: 15 * time.Minute},
		read(map[string]string{"DYN_TCP_RPC_PORT": " "})); d != "" {
		t.Errorf("defaults: -want +got\n%s", d)
	}
	got := read(map[string]string{"DYN_TCP_RPC_HOST": "::1", "DYN_TCP_RPC_PORT": "5000", "DYN_TCP_MAX_MESSAGE_SIZE": "100",
		"DYN_TCP_WORKER_POOL_SIZE": "7", "DYN_TCP_WORK_QUEUE_SIZE": "8", "DYN_REQUEST_PLANE_CODEC": "json",
		"DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "3", "DYN_QUIC_RESPONSE_BATCH_INTERVAL_US": "5000"})
	want := Environment{Options: Options{Host: "::1", Port: 5000, MaxMessage: 100, Limits: Limits{7, 8}, QUICBatch: 5 * time.Millisecond}, Codec: JSON, DrainLimit: 3 * time.Second}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for limit, want := range map[string]Limits{"0": {1, 16}, "5": {5, 16}} {
		if got := read(map[string]string{"DYN_ENGINE_REQUEST_LIMIT": limit}); got.Options.Limits != want {
			t.Errorf("engine limit %s: %+v, want %+v", limit, got.Options.Limits, want)
		}
	}
	if got := read(map[string]string{"DYN_ENGINE_REQUEST_LIMIT": "3", "DYN_DYNAMO_REQUEST_QUEUE_LIMIT": "1"}).Options.Limits; got != (Limits{3, 2}) {
		t.Errorf("the smallest queue is %+v", got)
	}
	bad := read(map[string]string{"DYN_TCP_RPC_PORT": "65536", "DYN_REQUEST_PLANE_CODEC": "cbor", "DYN_TCP_MAX_MESSAGE_SIZE": "-1"})
	if len(bad.Warnings) != 3 || bad.Options.Port != 0 || bad.Codec != MsgPack || bad.Options.MaxMessage != DefaultMaxMessage {
		t.Errorf("unreadable values: %+v", bad)
	}
}
