package settings_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/profiles"
)

func ExampleResolve() {
	none := func(string) (string, bool) { return "", false }
	v, err := flags.Read([]string{"--num-gpu-blocks-override", "1000", "--is-decode-worker"}, none)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := settings.Resolve(v, none, settings.NoDemo)
	if err != nil {
		fmt.Println(err)
		return
	}
	blocks, _ := s.Launch.Canonical().Get("engine.num_gpu_blocks")
	fmt.Println(blocks, s.Launch.Engine.Role, s.Launch.Dynamo.EnableLocalIndexer)
	fmt.Println(s.Deprecations[0])
	// Output:
	// 1000 decode true
	// --is-decode-worker is deprecated, use --disaggregation-mode=decode
}

func ExampleOverrides_Apply() {
	l, err := profiles.Normalize([]byte(`{"engine": {"worker_type": "prefill", "aic_nextn": 2}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	own, err := settings.Overrides{BootstrapPort: "8998", MTPSeed: "18446744073709551615"}.Apply(l.Canonical())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*own.Dynamo.BootstrapPort, own.Engine.MTPSeed, own.Dynamo.ZMQKVEventsPort == nil)
	_, err = settings.Overrides{ZMQReplayPort: "65536"}.Apply(l.Canonical())
	fmt.Println(err)
	// Output:
	// 8998 18446744073709551615 true
	// dynamo.zmq_replay_port: got 65536, must be between 0 and 65535
}

func ExampleStaggerDelay() {
	for _, n := range []int{32, 33, 129} {
		seconds, err := settings.StaggerDelay(n, -1)
		fmt.Println(n, "workers:", seconds, "s", err)
	}
	fmt.Println(settings.StaggerDelay(2, 0.5))
	_, err := settings.StaggerDelay(2, math.NaN())
	fmt.Println(err)
	// Output:
	// 32 workers: 0 s <nil>
	// 33 workers: 0.1 s <nil>
	// 129 workers: 0.2 s <nil>
	// 0.5 <nil>
	// --stagger-delay: got NaN, must be -1 (choose), 0 (none) or positive
}

func ExamplePortList() {
	ports, err := settings.PortList("--bootstrap-ports", "8998, 8999")
	fmt.Println(ports, err)
	_, err = settings.PortList("--bootstrap-ports", "8998,")
	fmt.Println(err)
	// Output:
	// [8998 8999] <nil>
	// --bootstrap-ports: got "8998,", must be port numbers separated by commas
}

func ExampleWorkerRole() {
	fmt.Println(settings.WorkerRole("", false, false))
	fmt.Println(settings.WorkerRole("decode", false, false))
	_, err := settings.WorkerRole("prefill", true, false)
	fmt.Println(err)
	// Output:
	// aggregated <nil>
	// decode <nil>
	// --is-prefill-worker, --is-decode-worker: cannot be combined with --disaggregation-mode prefill, which does the same
}

func TestNumbersOutOfRange(t *testing.T) {
	for _, line := range []string{
		"--num-gpu-blocks-override -1", "--block-size 1 --engine-type trtllm", "--max-model-len 0", "--startup-time=-1", "--kv-transfer-bandwidth=-1",
		"--gpu-memory-utilization 1.5", "--mem-fraction-static=-0.5", "--free-gpu-memory-fraction 2", "--speedup-ratio=-1", "--num-workers 0",
		"--sglang-schedule-conservativeness=-1 --engine-type sglang", "--no-enable-chunked-prefill --engine-type sglang", "--num-host-blocks 8 --engine-type trtllm",
	} {
		name := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '=' })[0]
		if _, _, err := resolve(line); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(name, "--no-")) &&
			!strings.Contains(err.Error(), strings.ReplaceAll(strings.TrimPrefix(name, "--no-"), "-", "_")) {
			t.Errorf("%s: got %v", line, err)
		}
	}
}

// The event plane is ZMQ unless another is asked for, whatever the discovery, as the reference does it.
func TestEventPlane(t *testing.T) {
	for line, want := range map[string]string{
		"--discovery-backend mem": "zmq", "--discovery-backend file": "zmq", "--discovery-backend etcd": "zmq", "--discovery-backend kubernetes": "zmq",
		"--discovery-backend file --event-plane nats": "nats",
	} {
		s, _, err := resolve(line)
		if err != nil || s.Planes.Event != want {
			t.Errorf("%s: got %v, %v, want %s", line, s, err, want)
		}
	}
}
