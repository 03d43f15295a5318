package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/profiles"
)

// Ports are the port lists: empty, or one a worker, in the order of their numbers.
type Ports struct {
	Bootstrap, ZMQEvents, ZMQReplay []int64
}

// ports reads the port lists. Those of a process with workers of both roles are for its prefill workers: the others have
// no use for them.
func (r *resolver) ports() error {
	s := r.s
	of, n := "--num-workers", s.Workers
	if s.Split() {
		of, n = rolePair[0], s.Pools[0].Workers
	}
	for _, list := range []struct {
		name string
		dst  *[]int64
	}{
		{"--bootstrap-ports", &s.Ports.Bootstrap}, {"--zmq-kv-events-ports", &s.Ports.ZMQEvents}, {"--zmq-replay-ports", &s.Ports.ZMQReplay},
	} {
		ports, err := PortList(list.name, r.v.Text(list.name))
		if err != nil {
			return err
		}
		if len(ports) > 0 && len(ports) != n {
			return wrongFlag(list.name, fmt.Sprintf("%d ports", len(ports)), fmt.Sprintf("must be one for each of the workers of %s %d", of, n))
		}
		*list.dst = ports
	}
	if len(s.Ports.ZMQReplay) > 0 && len(s.Ports.ZMQEvents) == 0 {
		return needs("--zmq-replay-ports", "--zmq-kv-events-ports")
	}
	return nil
}

// PortList reads ports separated by commas, the value of a flag; empty text is no list. Ranges are checked when workers are set up.
func PortList(name, text string) ([]int64, error) {
	if text == "" {
		return nil, nil
	}
	var ports []int64
	for _, piece := range strings.Split(text, ",") {
		n, ok := flags.ParseInt(piece)
		if !ok || !n.IsInt64() {
			return nil, &engine.SettingError{Setting: name, Kind: engine.KindType, Given: strconv.Quote(text), Allowed: "must be port numbers separated by commas"}
		}
		ports = append(ports, n.Int64())
	}
	return ports, nil
}

// stagger settles the pause between worker starts.
func (r *resolver) stagger() error {
	given := r.v.Get("--stagger-delay")
	d, err := StaggerDelay(r.s.Workers, given.Float)
	if err == nil && math.IsInf(d, 1) && r.s.Workers > 1 {
		err = wrongFlag("--stagger-delay", given.Text, "must be finite with more than one worker")
	}
	if err != nil {
		return err
	}
	if d > float64(math.MaxInt64/time.Second) {
		d = 0 // only reached with one worker, which waits for nobody
	}
	r.s.Stagger = time.Duration(d * float64(time.Second))
	return nil
}

// StaggerDelay returns the pause in seconds between starts of n workers: as given, or chosen by their number for -1.
func StaggerDelay(n int, given float64) (float64, error) {
	switch {
	case given >= 0:
		return given, nil
	case given != -1:
		return 0, wrongFlag("--stagger-delay", strconv.FormatFloat(given, 'g', -1, 64), "must be -1 (choose), 0 (none) or positive")
	case n <= 32:
		return 0, nil
	case n <= 128:
		return 0.1, nil
	}
	return 0.2, nil
}

// launchGroup is the number of workers after which a staggered launch pauses longer.
const launchGroup, launchPause = 32, 2 * time.Second

// Pause returns how long to wait after the start of worker i of n, counted from 0; the last one waits for nobody.
func Pause(i, n int, delay time.Duration) time.Duration {
	if delay <= 0 || i+1 >= n {
		return 0
	}
	if (i+1)%launchGroup == 0 {
		return delay + launchPause
	}
	return delay
}

// Worker returns the configuration of one worker: the common one with its own ports and seed.
func (s *Settings) Worker(i int) (*profiles.Launch, error) {
	common := s.PoolOf(i).Launch
	mtp := common.Engine.Nextn > 0
	if len(s.Ports.Bootstrap)+len(s.Ports.ZMQEvents) == 0 && !mtp {
		return common, nil
	}
	o := Overrides{BootstrapPort: nth(s.Ports.Bootstrap, i), ZMQKVEventsPort: nth(s.Ports.ZMQEvents, i), ZMQReplayPort: nth(s.Ports.ZMQReplay, i)}
	if mtp {
		o.MTPSeed = profiles.Number(strconv.FormatUint(common.Engine.MTPSeed+uint64(i), 10))
	}
	l, err := o.Apply(common.Canonical())
	if err == nil {
		l.ShareTiming(common)
	}
	return l, err
}

// LoadTiming reads the data of an AIS timing model, once for workers that differ in nothing but their role.
func (s *Settings) LoadTiming() error {
	for i := range s.Pools {
		if err := s.Pools[i].Launch.LoadTiming(); err != nil {
			return fmt.Errorf("--ais-perf-model, --ais-perf-config: %w", err)
		}
	}
	return nil
}

func nth(list []int64, i int) profiles.Number {
	if i >= len(list) {
		return ""
	}
	return profiles.Number(strconv.FormatInt(list[i], 10))
}

// Overrides are the settings in which workers of one process differ; an empty one leaves the common value.
type Overrides struct {
	BootstrapPort, ZMQKVEventsPort, ZMQReplayPort profiles.Number
	KVBytesPerToken                               profiles.Number
	MTPSeed                                       profiles.Number
}

// Apply resolves a configuration with the overrides in place.
func (v Overrides) Apply(base *profiles.Object) (*profiles.Launch, error) {
	o := base.Clone()
	set := func(path string, n profiles.Number) {
		if n != "" {
			o.Set(path, n)
		}
	}
	set("dynamo.bootstrap_port", v.BootstrapPort)
	set("dynamo.zmq_kv_events_port", v.ZMQKVEventsPort)
	set("dynamo.zmq_replay_port", v.ZMQReplayPort)
	set("engine.kv_transfer_bytes_per_token", v.KVBytesPerToken)
	set("engine.aic_mtp_seed", v.MTPSeed)
	return profiles.Resolve(o)
}
