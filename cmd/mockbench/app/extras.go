package app

import (
	"errors"
	"fmt"

	"mockbench/engine"
	"mockbench/engine/outputs"
	"mockbench/profiles"
	"mockbench/transport/eventplane"
	"mockbench/transport/vllmwire"
)

// The flags that name the ports of vLLM's wire.
const (
	eventsPorts = "--zmq-kv-events-ports"
	replayPorts = "--zmq-replay-ports"
)

// openWires opens the sockets of vLLM's own KV event wire, rank by rank; none if they are not wanted.
func (s *serving) openWires(l *profiles.Launch) ([][]eventplane.GroupSink, error) {
	d := &l.Dynamo
	if d.ZMQKVEventsPort == nil || !l.Engine.EnablePrefixCaching || l.Engine.Role == engine.DecodeRole {
		return nil, nil
	}
	var sinks [][]eventplane.GroupSink
	for rank := range int(l.DPSize) {
		o := vllmwire.Options{Rank: rank, BlockSize: l.Engine.BlockSize, Log: s.p.logger("vllmwire")}
		var err error
		if o.EventsPort, err = vllmwire.PortOf(int(*d.ZMQKVEventsPort), rank); err != nil {
			return nil, fmt.Errorf("%s: %w", eventsPorts, err)
		}
		if d.ZMQReplayPort != nil {
			o.Replay = true
			if o.ReplayPort, err = vllmwire.PortOf(int(*d.ZMQReplayPort), rank); err != nil {
				return nil, fmt.Errorf("%s: %w", replayPorts, err)
			}
		}
		w, err := vllmwire.Open(o)
		if listen := (*vllmwire.ListenError)(nil); errors.As(err, &listen) && listen.Replay {
			return nil, fmt.Errorf("%s: %w", replayPorts, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", eventsPorts, err)
		}
		s.mu.Lock()
		s.wires = append(s.wires, w)
		s.mu.Unlock()
		s.p.logger("vllmwire").Info("KV events on vLLM's wire", "rank", rank, "address", w.Addr(), "replay", w.ReplayAddr())
		sinks = append(sinks, []eventplane.GroupSink{w})
	}
	return sinks, nil
}

// reasoning returns the reasoning span of answers, nil if there is none.
func reasoning(l *profiles.Launch) *outputs.Reasoning {
	r := l.Dynamo.Reasoning
	if r == nil {
		return nil
	}
	return &outputs.Reasoning{Start: r.StartTokenID, End: r.EndTokenID, Ratio: r.Ratio}
}

// loadReplay reads the recorded answers, if there are any.
func loadReplay(p *program) (*outputs.Table, error) {
	path := p.s.Launch.Dynamo.ResponseReplayTracePath
	if path == nil {
		return nil, nil
	}
	t, err := outputs.LoadTable(*path)
	if err != nil {
		return nil, fmt.Errorf("--response-replay-trace-path: %w", err)
	}
	p.logger("app").Info("loaded response replay token table", "rows", t.Rows, "ignored", t.Ignored)
	return t, nil
}
